"""Small files of one process that are read every second, kept open.

Opening such a file takes five times as long as reading it. An open one also never speaks of another
process that was given the same pid: it gives nothing once its process has gone.
"""

from __future__ import annotations

import os
from pathlib import Path

from hangwatch_agent import procfs

MAX_BYTES = 4096
# Of all processes together: a node's limit may be as low as 1,024. Others are opened each time.
MOST_FILES = 512


class Files:
    """Reads files below `root`, a folder of /proc; `close` when the process is of no interest."""

    _open = 0

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._descriptors: dict[str, int] = {}

    def __del__(self) -> None:
        self.close()

    def read(self, name: str) -> str:
        """The text of a file; "" when the process has gone or may not be read."""
        descriptor = self._descriptors.get(name)
        if descriptor is None:
            try:
                descriptor = os.open(f"{self._root}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            except procfs.READ_ERRORS:
                return ""
            self._keep(name, descriptor)
        try:
            return os.pread(descriptor, MAX_BYTES, 0).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            if name not in self._descriptors:
                os.close(descriptor)

    def close(self) -> None:
        """Let go of all files; a later read opens them again."""
        Files._open -= len(self._descriptors)
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _keep(self, name: str, descriptor: int) -> None:
        if Files._open < MOST_FILES:
            Files._open += 1
            self._descriptors[name] = descriptor
