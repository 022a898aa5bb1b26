"""A private, real Postgres in the server's data folder: on a unix socket, gone with the server.

For a first start with nothing installed, for small sites and for tests. Not for several servers:
those share a Postgres by URL. Blocking; asyncio callers use `asyncio.to_thread`.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg

from hangwatch_server.db import account as accounts
from hangwatch_server.db import binaries as programs
from hangwatch_server.db import cluster, guard
from hangwatch_server.db.account import Account
from hangwatch_server.db.binaries import Binaries
from hangwatch_server.errors import DataFolderError

DATABASE = "hangwatch"
START_S = 60.0  # crash recovery after a power cut can take this long
STOP_S = guard.FAST_SHUTDOWN_S + guard.IMMEDIATE_SHUTDOWN_S + 5.0
MAX_SOCKET_PATH = 100  # bytes; the kernel's limit is 108 with the ending zero
_SOCKET = ".s.PGSQL.5432"

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "50",
    "shared_buffers": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "max_parallel_workers": "0",
    "max_logical_replication_workers": "0",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_min_messages": "warning",
}


class EmbeddedPostgres:
    """One Postgres in `data_dir`; `start()` gives the URL of its database."""

    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._data_dir = Path(data_dir).absolute()
        self._files = self._data_dir / "postgres"
        self._log = self._data_dir / "postgres.log"
        self._settings = SETTINGS | dict(settings or {})
        self._lock: int | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Make the files if there are none, start Postgres, wait until it answers; give its URL.

        Raises DataFolderError when there is no Postgres to start, or the folder is in use, out of
        reach or of another version.
        """
        # Before the folder: where there is no Postgres at all, as in our image, no folder helps.
        programs.find(os.environ, None)
        account = accounts.for_postgres()
        self._prepare_folder(account)
        self._lock = _take_lock(self._data_dir / "lock")
        try:
            return self._start(account)
        except BaseException:  # whatever went wrong, no process and no lock stays behind
            self.stop()
            raise

    def stop(self) -> None:
        """Stop Postgres and give the folder back; harmless when it does not run."""
        if self._guard is not None:
            assert self._guard.stdin is not None  # it was started with a pipe
            self._guard.stdin.close()
            self._guard.wait(STOP_S)
            self._guard = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _start(self, account: Account) -> str:
        version = cluster.made_by(self._files)
        found = programs.find(os.environ, version)
        binaries = programs.reachable(found, account, self._data_dir)
        if version is None:
            cluster.create(self._files, binaries, account)
        cluster.stop_leftover(self._files)
        cluster.write_login_rules(self._files, account)
        sockets, is_temporary = self._socket_folder(account)
        self._guard = self._launch(binaries, account, sockets, is_temporary)
        self._wait_until_ready(sockets)
        return _url(sockets, DATABASE)

    def _prepare_folder(self, account: Account) -> None:
        try:
            self._data_dir.mkdir(
                mode=0o711 if account.is_other else 0o700, parents=True, exist_ok=True
            )
        except OSError as error:
            raise DataFolderError(
                f"the data folder {self._data_dir} cannot be made ({error.strerror}): "
                "choose another one with --data-dir"
            ) from error
        if not account.can_reach(self._data_dir):
            raise DataFolderError(
                f"user '{account.name}', as whom Postgres runs when Hangwatch runs as root, cannot "
                f"reach the data folder {self._data_dir}: choose one that it can reach, for "
                "example --data-dir /var/lib/hangwatch, or run Hangwatch as an ordinary user"
            )
        if not account.may_enter(self._data_dir):
            # Our own folder, not a parent: let that account's group pass through, nobody else.
            os.chown(self._data_dir, -1, account.gid)
            os.chmod(self._data_dir, 0o710)

    def _socket_folder(self, account: Account) -> tuple[Path, bool]:
        """A private folder for the socket; a temporary one (True) where our path is too long."""
        folder = self._data_dir / "socket"
        is_temporary = len(os.fsencode(folder / _SOCKET)) > MAX_SOCKET_PATH
        if is_temporary:
            folder = Path(tempfile.mkdtemp(prefix="hangwatch-"))
        else:
            folder.mkdir(mode=0o700, exist_ok=True)
        cluster.give(folder, account)
        return folder, is_temporary

    def _launch(
        self, binaries: Binaries, account: Account, sockets: Path, is_temporary: bool
    ) -> subprocess.Popen[bytes]:
        settings = self._settings | {"unix_socket_directories": str(sockets)}
        if binaries.major >= 18:
            settings = {"io_method": "sync"} | settings  # no worker processes for so small a load
        options = [text for key, value in settings.items() for text in ("-c", f"{key}={value}")]
        with self._log.open("wb") as log:
            # -I and -S: the guard needs nothing from site-packages, and starts in milliseconds.
            return subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", guard.__file__),
                    *(str(account.uid), str(account.gid), str(sockets) if is_temporary else ""),
                    *(binaries.postgres, "-D", str(self._files), *options),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,
            )

    def _wait_until_ready(self, sockets: Path) -> None:
        """Poll a real connection, and make our database with the first one that works."""
        assert self._guard is not None  # started by the caller
        deadline = time.monotonic() + START_S
        while True:
            try:
                _create_database(_url(sockets, "postgres"))
                return
            except psycopg.OperationalError as error:
                if self._guard.poll() is not None or time.monotonic() > deadline:
                    raise DataFolderError(
                        f"the embedded Postgres in {self._data_dir} did not start. Its last words: "
                        f"{self._last_words() or error}. All of them: cat {self._log}"
                    ) from error
            time.sleep(0.01)

    def _last_words(self) -> str:
        text = self._log.read_text(errors="replace")
        return " ".join(text.split())[-600:]


def _take_lock(path: Path) -> int:
    """Lock the data folder for this process's life; the kernel gives it back however we end."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(lock, 20).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise DataFolderError(
            f"the data folder {path.parent} is in use by another Hangwatch server (pid {holder}): "
            f"stop that one with kill {holder}, or start this one with another --data-dir"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _create_database(url: str) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True, connect_timeout=5) as admin:
        found = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
        if found.fetchone() is None:
            admin.execute(f'CREATE DATABASE "{DATABASE}"')


def _url(sockets: Path, database: str) -> str:
    folder = quote(str(sockets), safe="/")
    return f"postgresql+psycopg://{cluster.SUPERUSER}@/{database}?host={folder}"
