"""Healthy: steps of six seconds."""

from __future__ import annotations

import progress


def main() -> None:
    progress.start()
    progress.train(5, step_s=6.0)
    progress.finish()


if __name__ == "__main__":
    main()
