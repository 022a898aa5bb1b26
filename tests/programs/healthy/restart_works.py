"""Healthy: the first attempt fails, torchrun restarts it, and the second attempt finishes."""

from __future__ import annotations

import os

import progress


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise RuntimeError("the first attempt fails")
    progress.train(60)
    progress.finish()


if __name__ == "__main__":
    main()
