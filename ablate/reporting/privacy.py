"""Keeps what is nobody's business out of a report: folders of a machine, and names of users and hosts."""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from functools import cache
from pathlib import PurePosixPath

ANCHORS = ("site-packages", "dist-packages", "ablate", "ablate_plugins", "plugins", "experiments", "trials",
           "tests")  # fmt: skip
"""Folders from which on a path is the project's, and worth reading."""
GENERIC = {"root", "user", "users", "admin", "ubuntu", "nobody", "runner", "localhost", "home", "python", "test",
           "main"}  # fmt: skip
"""Names that are words; hiding them would hide nothing and spoil the text."""

_FILE_URL = re.compile(r"file://(?=/)")
_POSIX = re.compile(r"(?<![\w/.\\<])~?/(?:[^\s/'\"`<>|:;,(){}\[\]*?=]+/)+[^\s/'\"`<>|:;,(){}\[\]*?=]*")
_SPACED = re.compile(r"(?<=[\"'])~?/(?:[^/'\"\n<>]+/)+[^/'\"\n<>]*(?=[\"'])")
_WINDOWS = re.compile(r"(?<![\w])(?:[A-Za-z]:[\\/]|\\\\)[^\s'\"`<>|;,(){}\[\]*?]+")
_WINDOWS_SPACED = re.compile(r"(?<=[\"'])(?:[A-Za-z]:[\\/]|\\\\)[^'\"\n<>|]+(?=[\"'])")
_HOME = re.compile(r"(?:/home/|/Users/|\\Users\\|~)([A-Za-z_][\w.-]*)")
_SHORT_HOME = re.compile(r"(?<![\w/.])(?:/home/|/Users/)[\w.-]+(?![\w/.-])|(?<![\w/])~[A-Za-z_][\w.-]*")
# With a dot or a colon after the host, since a matrix product is spelled q@k.
_ACCOUNT = re.compile(r"[\w.+-]+@[A-Za-z0-9][\w-]*(?:(?:\.[\w-]+)+|(?=:))")
_ADDRESS = re.compile(r"(?<![\w.-])(?!127\.0\.0\.1)(?:\d{1,3}\.){3}\d{1,3}(?![\w.-])")


def redact(text: str) -> str:
    """The text with paths cut to the project's own, and without names of users, hosts and network addresses.

    A path keeps what follows ``site-packages``, ``ablate``, ``experiments`` and the like; any other is cut to the
    name of its file. The same text gives the same result, on the machine that made it.
    """
    people = {name for name in _HOME.findall(text) if name.lower() not in GENERIC}
    text = _FILE_URL.sub("", text)
    for pattern in (_WINDOWS_SPACED, _WINDOWS, _SPACED, _POSIX):
        text = pattern.sub(lambda match: _cut(match.group()), text)
    text = _SHORT_HOME.sub("~", text)
    text = _ACCOUNT.sub("…", text)
    text = _ADDRESS.sub("…", text)
    for name in sorted(people | _own_names(), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "…", text)
    return text


def tail(text: str, lines: int = 25, width: int = 300) -> str:
    """The last lines of a log, redacted; what was cut, in length or width, is said where it was."""
    rows = redact(text).rstrip("\n").split("\n")
    kept = [row if len(row) <= width else f"{row[:width]} … ({len(row) - width} more characters)" for row in rows]
    if len(kept) > lines:
        kept = [f"… ({len(kept) - lines} lines before)", *kept[-lines:]]
    return "\n".join(kept)


def _cut(path: str) -> str:
    parts = [part for part in PurePosixPath(path.replace("\\", "/")).parts if part.strip("/")]
    if not parts:  # slashes alone
        return path
    for index in range(len(parts) - 1, -1, -1):
        if parts[index] in ANCHORS and index < len(parts) - 1:
            return "/".join(parts[index:])
    # The last part of a short path may well be a person's folder; a file shows by its ending.
    if len(parts) > 2 or "." in parts[-1].strip("."):
        return f"…/{parts[-1]}"
    return "…"


@cache
def _own_names() -> frozenset[str]:
    """This machine's user and host, where they are no common words."""
    names = {socket.gethostname(), socket.gethostname().split(".")[0]}
    with contextlib.suppress(OSError, KeyError, ImportError):  # a container may know no name for its user
        names.add(getpass.getuser())
    return frozenset(name for name in names if len(name) > 3 and name.lower() not in GENERIC)
