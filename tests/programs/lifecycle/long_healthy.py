"""A minute of steady training teaches the job's own limits; then one rank gets stuck."""

from __future__ import annotations

import time

import progress


def rotate_logs() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(600)
    if rank == 3:
        rotate_logs()
    progress.train(1000)


if __name__ == "__main__":
    main()
