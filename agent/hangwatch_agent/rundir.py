"""The run dir: made safe to use, and locked, so that one agent reads it and no second one."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from hangwatch_agent import settings
from hangwatch_agent.errors import RunDirError

LOCK_NAME = "agent.lock"


class Lock:
    """Holds the run dir's lock until `release` or the end of the process."""

    def __init__(self, run_dir: Path) -> None:
        prepare(run_dir)
        self._descriptor = _open(run_dir / LOCK_NAME)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise RunDirError(
                f"run dir {run_dir} is followed by another agent already (pid {holder or '?'}); "
                "stop that one, or give this one its own folder: --run-dir DIR"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)


def prepare(run_dir: Path) -> None:
    """Make the folder if there is none: private, but for root's default, which all users share.

    Shared like /tmp: with the sticky bit nobody can remove or replace another user's files, and
    whose record is believed is decided by its owner.
    """
    is_shared = os.geteuid() == 0 and run_dir == settings.default_run_dir()
    try:
        if not run_dir.exists():
            run_dir.mkdir(mode=0o700, parents=True)
            if is_shared:
                run_dir.chmod(0o1777)  # mkdir's mode is cut by the umask
        info = run_dir.stat()
    except OSError as error:
        raise RunDirError(
            f"run dir {run_dir} cannot be used: {error.strerror}; give another: --run-dir DIR"
        ) from error
    mode = info.st_mode
    if not stat.S_ISDIR(mode):
        raise RunDirError(f"run dir {run_dir} is not a folder; give another: --run-dir DIR")
    if os.geteuid() not in (0, info.st_uid) and info.st_uid != 0:
        raise RunDirError(
            f"run dir {run_dir} belongs to uid {info.st_uid}, who could replace what is in it; "
            "give another: --run-dir DIR"
        )
    if mode & 0o002 and not mode & stat.S_ISVTX:
        raise RunDirError(
            f"run dir {run_dir} lets every user remove others' files; chmod +t {run_dir}"
        )


def _open(path: Path) -> int:
    """The lock file, which is written to: never one that another user has put there or linked."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        info = os.fstat(handle)
        is_own = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_nlink == 1
        if not is_own:
            os.close(handle)
            raise PermissionError(errno.EPERM, "it is not a plain file of this agent's user")
        return handle
    except OSError as error:
        raise RunDirError(
            f"lock {path} cannot be used: {error.strerror}; remove it, run the agent as the "
            "folder's owner, or give another folder: --run-dir DIR"
        ) from error
