"""Opens a file as a process sees it, below `/proc/PID/root`, wherever the links in its path point.

Below that folder the kernel resolves an absolute link from the caller's root: a job in a container
could so lead a root agent to files of the host. Here the kernel follows no link; their texts are
resolved below the same root. openat2 has RESOLVE_IN_ROOT for this, but only from Linux 5.6 on and
where no container's filter forbids it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

MAX_LINKS = 40  # as the kernel's
MAX_DEPTH = 64  # folders that are open at once: descriptors are scarce
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened(root: Path, path: str, flags: int) -> Iterator[int]:
    """A descriptor of what the absolute `path` names below `root`, for as long as it is used.

    A link in the last place is not followed. Raises OSError.
    """
    *folders, last = _names(path) or ["."]
    way = _Way(root)
    try:
        way.go(folders)
        handle = os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way.here)
    finally:
        way.close()
    try:
        yield handle
    finally:
        os.close(handle)


class _Way:
    """The folders from the root to here, held open, so that none can be another meanwhile."""

    def __init__(self, root: Path) -> None:
        self._folders = [os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
        self._links = 0

    @property
    def here(self) -> int:
        return self._folders[-1]

    def go(self, names: list[str]) -> None:
        """From here into one folder after the other, or to where a link in their place leads."""
        for name in names:
            if name == "..":
                self._back_to(max(1, len(self._folders) - 1))
                continue
            target = self._enter(name)
            if target.startswith("/"):
                self._back_to(1)
            self.go(_names(target))

    def close(self) -> None:
        self._back_to(0)

    def _enter(self, name: str) -> str:
        """Step into a folder; the text of a link instead, which is not "" then."""
        place = os.open(name, _PLACE, dir_fd=self.here)
        mode = os.fstat(place).st_mode
        if stat.S_ISDIR(mode) and len(self._folders) < MAX_DEPTH:
            self._folders.append(place)
            return ""
        try:
            if not stat.S_ISLNK(mode):
                code = errno.ELOOP if stat.S_ISDIR(mode) else errno.ENOTDIR
                raise OSError(code, os.strerror(code), name)
            self._links += 1
            if self._links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
            return os.readlink("", dir_fd=place)
        finally:
            os.close(place)

    def _back_to(self, depth: int) -> None:
        while len(self._folders) > depth:
            os.close(self._folders.pop())


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
