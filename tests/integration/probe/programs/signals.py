"""Files through which a test and a program tell each other how far they are."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

FOLDER = Path(os.environ["SIGNALS"])


def tell(name: str) -> None:
    (FOLDER / name).touch()


def await_signal(name: str) -> None:
    end = time.monotonic() + 600
    while not (FOLDER / name).exists() and time.monotonic() < end:
        time.sleep(0.05)


def hold_interpreter(name: str) -> None:
    """Keep the GIL until somebody opens the pipe `name` for writing: no thread runs meanwhile."""
    path = str(FOLDER / name).encode()
    ctypes.PyDLL(None).open(path, os.O_RDONLY)  # calls of a PyDLL keep the GIL
