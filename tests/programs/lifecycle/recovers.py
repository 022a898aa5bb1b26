"""A rank is stopped for half a minute and goes on by itself: the hang ends, the job finishes."""

from __future__ import annotations

import os
import signal
import subprocess

import progress

STOPPED_S = 30


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        # A shell lets this process go on: a stopped one cannot.
        subprocess.Popen(["sh", "-c", f"sleep {STOPPED_S}; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
    progress.train(60)
    progress.finish()


if __name__ == "__main__":
    main()
