"""One rank raises in the first attempt; the second attempt, started by torchrun, trains on.

The first lasts until the file that FAIL_ONCE_THERE_IS names is there, so that it is surely seen.
"""

from __future__ import annotations

import os

import progress


def main() -> None:
    rank = progress.start()
    is_first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    for _ in range(1000):
        progress.train(1)
        if is_first and rank == 1 and os.path.exists(os.environ["FAIL_ONCE_THERE_IS"]):
            raise RuntimeError("the first attempt fails")


if __name__ == "__main__":
    main()
