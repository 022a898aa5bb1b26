"""Files through which a test and a program tell each other how far they are."""

from __future__ import annotations

import os
import time
from pathlib import Path

FOLDER = Path(os.environ["SIGNALS"])


def tell(name: str) -> None:
    (FOLDER / name).touch()


def await_signal(name: str) -> None:
    end = time.monotonic() + 120
    while not (FOLDER / name).exists() and time.monotonic() < end:
        time.sleep(0.05)
