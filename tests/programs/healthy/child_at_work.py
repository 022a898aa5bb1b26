"""Healthy: rank 1 waits 25 seconds for a program that computes; the others wait for rank 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import progress


def convert_weights() -> None:
    folder = Path(__file__).parent
    subprocess.run([sys.executable, "-c", "import work; work.compute(25)"], cwd=folder, check=True)


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 1:
        convert_weights()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
