"""Rank 1 stops for ever in its first attempt; the second, by torchrun, trains to its end."""

from __future__ import annotations

import os
import signal

import progress


def main() -> None:
    rank = progress.start()
    progress.train(15)
    if rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGSTOP)
    progress.train(5)
    progress.finish()


if __name__ == "__main__":
    main()
