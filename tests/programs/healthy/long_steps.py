"""Healthy: every step takes 13 seconds of waiting for a simulator, on all ranks alike."""

from __future__ import annotations

import progress


def main() -> None:
    progress.start()
    progress.train(5, step_s=13.0)
    progress.finish()


if __name__ == "__main__":
    main()
