"""Healthy: rank 0 prepares the data for 30 seconds before it joins; the others wait in init."""

from __future__ import annotations

import os

import progress
import work


def main() -> None:
    progress.mark()
    if os.environ["RANK"] == "0":
        work.compute(30)
    progress.start()
    progress.train(30)
    progress.finish()


if __name__ == "__main__":
    main()
