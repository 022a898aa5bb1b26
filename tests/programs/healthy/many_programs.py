"""Healthy: rank 1 runs one short program after another for 25 seconds; the others wait for it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import progress


def pack_shards() -> None:
    """No program lives long enough to be looked at twice."""
    until_s = time.monotonic() + 25
    while time.monotonic() < until_s:
        subprocess.run(
            [sys.executable, "-S", "-c", "import work; work.compute(0.4)"],
            cwd=Path(__file__).parent,
            check=True,
        )


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 1:
        pack_shards()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
