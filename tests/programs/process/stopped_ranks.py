"""Two ranks of four are stopped, as when the container of one of two workers is paused."""

from __future__ import annotations

import os
import signal

import progress


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank in (2, 3):
        os.kill(os.getpid(), signal.SIGSTOP)
    progress.train(1000)


if __name__ == "__main__":
    main()
