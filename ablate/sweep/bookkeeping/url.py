"""A database's URL: variables of the environment in it, and how it is shown without its password."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from ablate.errors import InputError

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECRET = re.compile(r"pass|pwd|secret|token|key", re.IGNORECASE)
"""Options of a URL whose values are not for others."""
_PASSWORD = re.compile(r"(://[^/@:]*:)(.*)(?=@)")
"""What stands in front of a password, and all that may be one: up to the last @."""
CODE = "S406"


def cannot(what: str, help: str | None = None) -> InputError:
    """The one error of a storage that cannot be used."""
    return InputError.one(CODE, what, help=help)


def read_url(text: str, environment: Mapping[str, str] = os.environ) -> URL:
    """A URL with the variables that it names as ``${NAME}``; their values may have any character.

    Raises:
        InputError: a variable is not set, or it is no URL (S406); nothing of a value is in the message.
    """
    missing = [name for name in _VARIABLE.findall(text) if not environment.get(name)]
    if missing:
        raise cannot(f"`storage` names the variable `{missing[0]}`, which is not set", f"export {missing[0]}=...")

    def value(found: re.Match[str]) -> str:
        return environment[found[1]]

    # In front of the last @ stand a name and a password, in which signs such as / would end the part.
    user, at, rest = text.rpartition("@")
    user = _VARIABLE.sub(lambda found: quote(value(found), safe=""), user)
    try:
        return make_url(user + at + _VARIABLE.sub(value, rest))
    except (ArgumentError, ValueError):
        example = "write it as `postgresql+psycopg://USER@HOST:5432/DATABASE`"
        raise cannot("`storage` is no URL of a database", example) from None


def repeatable(text: str) -> str:
    """A URL as the user wrote it, fit to be kept and to be given again: variables stay, every secret is ``***``.

    It goes by the places at which a secret can stand, however it is written there, and hides rather too much.
    """
    address, mark, query = _PASSWORD.sub(lambda found: found[1] + _hidden(found[2]), text).partition("?")
    options = (each.partition("=") for each in query.split("&"))
    told = (f"{key}{equals}{_hidden(value) if _SECRET.search(key) else value}" for key, equals, value in options)
    return f"{address}{mark}{'&'.join(told)}"


def _hidden(secret: str) -> str:
    return "***" if _VARIABLE.sub("", secret) else secret


def shown(url: URL) -> str:
    """A URL as messages have it: without its password, and without options, which may hold one."""
    return url.set(query={}).render_as_string(hide_password=True)


def redacted(text: str, url: URL) -> str:
    """A text in which the URL's secrets are replaced, whoever wrote it."""
    secrets = [url.password, *(value for key, value in url.query.items() if _SECRET.search(key))]
    whole = url.render_as_string(hide_password=False)
    text = text.replace(whole, shown(url))
    for secret in filter(None, secrets):
        for form in (str(secret), quote(str(secret), safe="")):
            text = text.replace(form, "***")
    return text
