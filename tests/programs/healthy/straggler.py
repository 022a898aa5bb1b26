"""Healthy: one rank needs three times as long for its step as the others."""

from __future__ import annotations

import progress


def main() -> None:
    rank = progress.start()
    progress.train(25, step_s=1.2 if rank == 2 else 0.4)
    progress.finish()


if __name__ == "__main__":
    main()
