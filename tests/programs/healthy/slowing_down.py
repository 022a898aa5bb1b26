"""Healthy: each step takes a little longer than the one before, up to eight seconds."""

from __future__ import annotations

import progress


def main() -> None:
    progress.start()
    step_s = 0.2
    while step_s < 8:
        progress.train(1, step_s=step_s)
        step_s *= 1.25
    progress.finish()


if __name__ == "__main__":
    main()
