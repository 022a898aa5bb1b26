"""Trains in small steps until it is ended; for tests of what surrounds a healthy job."""

from __future__ import annotations

import progress


def main() -> None:
    progress.start()
    progress.train(1_000_000)


if __name__ == "__main__":
    main()
