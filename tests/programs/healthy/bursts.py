"""Healthy: bursts of fast steps with pauses of eight seconds between them."""

from __future__ import annotations

import time

import progress


def main() -> None:
    progress.start()
    for _ in range(4):
        progress.train(100, step_s=0.01)
        time.sleep(8)
    progress.finish()


if __name__ == "__main__":
    main()
