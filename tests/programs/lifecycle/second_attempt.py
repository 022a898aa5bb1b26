"""The first attempt fails and is restarted by torchrun; in the second a rank gets stuck.

torch 2.13 lets attempts share one store, in which gloo may find the addresses of the attempt before
and be refused; the environment of such cases gives each attempt a store of its own.
"""

from __future__ import annotations

import os
import time

import progress


def skip_seen_samples() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        if rank == 1:
            raise RuntimeError("the first attempt fails")
    elif rank == 0:
        skip_seen_samples()
    progress.train(1000)


if __name__ == "__main__":
    main()
