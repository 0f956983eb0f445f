"""A PostgreSQL of the tests' own: Debian's package, a cluster in a temporary folder, a socket in it and no port."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

PASSWORD = "s3cret/@pw"
"""The password of the only user, with signs that a URL must spell otherwise."""
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
}


def programs() -> Path | None:
    """Where Debian's package keeps what starts a server; it is on nobody's path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).resolve().parent if elsewhere else None


class Postgres:
    """A server that can be stopped and started."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._programs = programs
        self._databases = 0

    def make(self) -> None:
        """Make the cluster; as root it belongs to somebody else, since PostgreSQL refuses root."""
        if os.getuid() == 0:
            owner = _unprivileged()
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._call(
            "initdb", "--username=ada", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8",
            "--locale=C.UTF-8", f"--pgdata={self._folder / 'data'}",
        )  # fmt: skip

    def start(self) -> None:
        """Start it and wait until it answers."""
        given = {**SETTINGS, "unix_socket_directories": str(self._folder)}
        options = " ".join(f"-c {key}='{value}'" for key, value in given.items())
        self._call("pg_ctl", "--wait", f"--log={self._folder / 'log'}", f"--options={options}", "start")

    def stop(self) -> None:
        """Stop it as a crash would."""
        self._call("pg_ctl", "--wait", "--mode=immediate", "stop")

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._databases += 1
        name = f"studies{self._databases}"
        self._call("createdb", f"--host={self._folder}", "--username=ada", name)
        return self.url(name)

    def url(self, database: str, *, user: str = "ada", password: str = PASSWORD) -> str:
        """The URL of a database, for a user with a password."""
        return f"postgresql+psycopg://{user}:{quote(password, safe='')}@/{database}?host={self._folder}"

    def _call(self, program: str, *arguments: str) -> None:
        own = {"PGPASSWORD": PASSWORD, "PGDATA": str(self._folder / "data"), "HOME": "/nonexistent"}
        owner = _unprivileged() if os.getuid() == 0 else None
        shown = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self._folder,
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,  # the server keeps what it inherits
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            user=owner and owner.pw_uid,
            group=owner and owner.pw_gid,
            extra_groups=[] if owner else None,
        )
        assert shown.returncode == 0, f"{program}: {shown.stdout or (self._folder / 'log').read_text()}"


def _unprivileged() -> pwd.struct_passwd:
    """A user that is not root: the package's own where it has made one."""
    names = {user.pw_name for user in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


@contextmanager
def running(programs: Path) -> Iterator[Postgres]:
    """A server for as long as the block lasts."""
    # A socket's path may have 107 characters, and pytest's folders are for one user alone.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    folder.chmod(0o755)
    server = Postgres(folder, programs)
    try:
        server.make()
        server.start()
        yield server
    finally:
        if (folder / "data/postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder)
