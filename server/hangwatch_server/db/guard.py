"""Runs Postgres as its child and stops it when the server is gone, however the server ended.

A program of its own, started by `embedded` with the reading end of a pipe as standard input: the
kernel closes the pipe when the server's process ends, by SIGKILL too. PR_SET_PDEATHSIG alone does
not do: it follows the thread that forked, not the process, and is cleared when the user id changes.
The guard imports nothing heavy and nothing of Hangwatch, and runs in a session of its own, so that
a signal to the server's process group does not take it along.

Usage: guard.py UID GID FOLDER-TO-REMOVE-OR-EMPTY POSTGRES ARGUMENT...
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import sys

FAST_SHUTDOWN_S = 20.0
IMMEDIATE_SHUTDOWN_S = 5.0
_PR_SET_PDEATHSIG = 1


def main() -> int:
    uid, gid, folder, *arguments = sys.argv[1:]
    guard_pid = os.getpid()
    libc = ctypes.CDLL(None)
    child = os.fork()
    if child == 0:
        _become_postgres(libc, guard_pid, int(uid), int(gid), arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    exit_code = _watch(child)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return exit_code


def _become_postgres(
    libc: ctypes.CDLL, guard_pid: int, uid: int, gid: int, arguments: list[str]
) -> None:
    """In the child: drop privileges, die with the guard, become Postgres. Never returns."""
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        # After the change of user, which would clear it. If the guard is killed: fast stop.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() == guard_pid:
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.execv(arguments[0], arguments)
    except OSError as error:
        sys.stderr.write(f"{arguments[0]} cannot be run: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


def _watch(child: int) -> int:
    """Wait for the end of Postgres or of the server; then stop Postgres. Gives its exit code."""
    process = os.pidfd_open(child)
    ready, _, _ = select.select([process, sys.stdin.fileno()], [], [])
    if process not in ready:
        for number, patience_s in (
            (signal.SIGINT, FAST_SHUTDOWN_S),
            (signal.SIGQUIT, IMMEDIATE_SHUTDOWN_S),
            (signal.SIGKILL, None),
        ):
            signal.pidfd_send_signal(process, number)
            if select.select([process], [], [], patience_s)[0]:
                break
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
