"""Beside the job that hangs, its node runs another, which trains on; both have ranks 0 and 1.

Started as it is, this program is the shell script that starts both, each under a torchrun of its
own; the neighbour has a name of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import progress

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
STEADY = Path(__file__).parent.parent / "plain" / "steady.py"


def start_both() -> None:
    name = f"{os.environ['HANGWATCH_JOB']}-neighbour"
    run = [sys.executable, "-m", "hangwatch_agent", "run", "--job", name, "--"]
    neighbour = subprocess.Popen([*run, *TORCHRUN, str(STEADY)], stdout=subprocess.DEVNULL)
    subprocess.run([*TORCHRUN, __file__], check=True)
    neighbour.wait()


def compute() -> None:
    while True:
        time.sleep(60)


def train() -> None:
    rank = progress.start()
    progress.train(100)
    if rank == 1:
        compute()
    progress.train(1000)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        start_both()
