"""One rank raises in the first attempt; the second attempt, started by torchrun, trains on."""

from __future__ import annotations

import os

import progress


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise RuntimeError("the first attempt fails")
    progress.train(1000)


if __name__ == "__main__":
    main()
