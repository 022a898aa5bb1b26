"""Rank 1 stays away from a collective, and no rank lets another process read its memory.

A process that is not dumpable stands for one that the agent may not read: without CAP_SYS_PTRACE
the kernel refuses it even to its own user.
"""

from __future__ import annotations

import ctypes
import time

import progress

PR_SET_DUMPABLE = 4  # <sys/prctl.h>


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    rank = progress.start()
    progress.train(10)
    while rank == 1:
        time.sleep(60)
    progress.train(1000)


if __name__ == "__main__":
    main()
