"""One rank is stopped, as a debugger or a suspended container leaves a process."""

from __future__ import annotations

import os
import signal

import progress


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    progress.train(1000)


if __name__ == "__main__":
    main()
