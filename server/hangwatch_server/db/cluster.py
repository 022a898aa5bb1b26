"""The files of the embedded Postgres: made once, checked at every start. Runs no server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from hangwatch_server.db import account as accounts
from hangwatch_server.db.account import Account
from hangwatch_server.db.binaries import Binaries
from hangwatch_server.errors import DataFolderError

SUPERUSER = "hangwatch"
_FAST_STOP_S = 20.0
_IMMEDIATE_STOP_S = 5.0


def made_by(folder: Path) -> int | None:
    """The major version of Postgres that made these files; None when there are none yet."""
    try:
        return int((folder / "PG_VERSION").read_text().strip())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataFolderError(
            f"{folder}/PG_VERSION cannot be read, so this is no sound Postgres folder: restore it "
            "from a backup, or use another folder: --data-dir"
        ) from error


def create(folder: Path, binaries: Binaries, account: Account) -> None:
    """Run initdb beside the final place and move the result there: it is whole or absent."""
    unfinished = folder.with_name(folder.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    give(unfinished, account)
    arguments = ["-D", str(unfinished), "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "-A", "peer"]
    done = subprocess.run(
        [binaries.initdb, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        user=account.uid if account.is_other else None,
        group=account.gid if account.is_other else None,
        extra_groups=[] if account.is_other else None,
    )
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split())[-600:]
        raise DataFolderError(
            f"Postgres could not make its files in {folder} as user '{account.name}': {words}"
        )
    unfinished.rename(folder)


def write_login_rules(folder: Path, account: Account) -> None:
    """Only this server's own account may log in, and only through the socket (peer login)."""
    allowed = dict.fromkeys((accounts.current(), account.name))
    users = "".join(f'hangwatch "{name}" {SUPERUSER}\n' for name in allowed)
    for name, text in (
        ("pg_ident.conf", users),
        ("pg_hba.conf", "local all all peer map=hangwatch\n"),
    ):
        path = folder / name
        path.write_text(text)
        give(path, account)


def give(path: Path, account: Account) -> None:
    if account.is_other:
        os.chown(path, account.uid, account.gid)


def stop_leftover(folder: Path) -> None:
    """Stop a Postgres that outlived its server on these files, and clear its pid file.

    The caller holds the folder's lock, so no living server owns it. Raises DataFolderError if it
    cannot be stopped.
    """
    pid = _leftover(folder)
    for number, patience_s in (
        (signal.SIGINT, _FAST_STOP_S),
        (signal.SIGQUIT, _IMMEDIATE_STOP_S),
    ):
        if pid is None:
            break
        _signal(pid, number)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and _leftover(folder) == pid:
            time.sleep(0.02)
        pid = _leftover(folder)
    if pid is not None:
        raise DataFolderError(
            f"an old Postgres (pid {pid}) on {folder} does not stop: end it with kill -QUIT {pid}, "
            "then start again"
        )
    # Its pid may belong to another program by now, which Postgres would take for a running server.
    (folder / "postmaster.pid").unlink(missing_ok=True)


def _leftover(folder: Path) -> int | None:
    """The pid of a running postmaster of these files: it works in its data folder."""
    try:
        pid = int((folder / "postmaster.pid").read_text().split("\n", 1)[0])
        where = os.readlink(f"/proc/{pid}/cwd")
    except (OSError, ValueError):
        return None
    return pid if where == str(folder.resolve()) else None


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it ended by itself
    except PermissionError as error:
        raise DataFolderError(
            f"an old Postgres (pid {pid}) still runs and belongs to another user: end it with "
            f"kill -INT {pid}, then start again"
        ) from error
