"""A Postgres as an operator runs it: over TCP, with a password, for a role that owns one database.

Debian's programs where they are installed, else those of the wheel. Not the embedded Postgres:
nothing of its launcher is used here.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from tests.support import postgres
from tests.support.waiting import until

from hangwatch_server.db import account as accounts
from hangwatch_server.db import binaries as programs
from hangwatch_server.db.account import Account
from hangwatch_server.db.binaries import Binaries
from hangwatch_server.demo.stage import free_port

START_S, STOP_S = 120, 60
ROLE, PASSWORD, DATABASE = "trainer", "p4ss-w0rd", "hangs"
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Stock:
    """A running one: its port, the role's name and database, and the folder of its programs."""

    port: int
    role: str
    database: str
    programs: Path

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{self.role}:{PASSWORD}@127.0.0.1:{self.port}/{self.database}"

    @property
    def environment(self) -> dict[str, str]:
        """For programs of Postgres that are told the role and the database, and nothing else."""
        return {
            "PATH": f"{self.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGPASSWORD": PASSWORD,
        }


@contextmanager
def running() -> Iterator[str]:
    """Start it on a free port; give the URL of its empty database, with password."""
    with started(ROLE, DATABASE) as stock:
        yield stock.url


@contextmanager
def started(role: str, database: str) -> Iterator[Stock]:
    """Start it on a free port with one role, which owns its one database and may make others."""
    account = accounts.for_postgres()
    with postgres.data_folder() as folder:
        folder.chmod(0o711)
        found = _programs(account, folder)
        files = folder / "files"
        _initialise(found, account, files, folder / "password")
        port = free_port()
        process = _start(found, account, files, port)
        try:
            _make_database(port, process, role, database)
            yield Stock(port, role, database, found.folder)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(STOP_S)


def _programs(account: Account, folder: Path) -> Binaries:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    chosen = {**os.environ, "PG_BINDIR": str(installed[-1])} if installed else os.environ
    return programs.reachable(programs.find(chosen, None), account, folder)


def _initialise(found: Binaries, account: Account, files: Path, password: Path) -> None:
    files.mkdir(mode=0o700)
    password.write_text(PASSWORD)
    if account.is_other:
        os.chown(files, account.uid, account.gid)
        os.chown(password, account.uid, account.gid)
    arguments = ["-D", str(files), "-U", "postgres", "-A", "scram-sha-256", "-N", "-E", "UTF8"]
    subprocess.run(
        [found.initdb, *arguments, "--pwfile", str(password)],
        check=True,
        capture_output=True,
        env=ENVIRONMENT,
        cwd="/",
        user=account.uid if account.is_other else None,
        group=account.gid if account.is_other else None,
        extra_groups=[] if account.is_other else None,
    )


def _start(found: Binaries, account: Account, files: Path, port: int) -> subprocess.Popen[bytes]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "fsync": "off",
    }
    options = [text for key, value in settings.items() for text in ("-c", f"{key}={value}")]
    return subprocess.Popen(
        [found.postgres, "-D", str(files), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
        cwd="/",
        start_new_session=True,
        user=account.uid if account.is_other else None,
        group=account.gid if account.is_other else None,
        extra_groups=[] if account.is_other else None,
    )


def _make_database(port: int, process: subprocess.Popen[bytes], role: str, database: str) -> None:
    admin = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/postgres"

    def is_ready() -> bool:
        assert process.poll() is None, "the stock Postgres ended"
        try:
            postgres.execute(admin, "SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    until(is_ready, START_S, "the stock Postgres answers")
    postgres.execute(
        admin,
        f"CREATE ROLE {role} LOGIN CREATEDB PASSWORD '{PASSWORD}'",
        f"CREATE DATABASE {database} OWNER {role}",
    )
