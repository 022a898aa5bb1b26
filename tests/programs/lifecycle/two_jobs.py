"""Two jobs on one node, each under its own `hangwatch run`; a rank of one of them gets stuck.

This job is the one that its case is about; `--stuck` says which of the two gets stuck.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import progress

NEIGHBOUR = "IS_NEIGHBOUR"


def start_neighbour() -> None:
    """The other job, as another user of the node would start it: not a part of this one."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TORCHELASTIC_", "HANGWATCH_"))
        and name not in {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    }
    run = ["-m", "hangwatch_agent", "run", "--job", f"neighbour-{os.getpid()}"]
    run += ["--run-dir", os.environ["HANGWATCH_RUN_DIR"], "--"]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.Popen(
        [sys.executable, *run, sys.executable, *launch, *sys.argv],
        env={**environment, NEIGHBOUR: "1"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,  # its progress is not this job's
    )


def wait_for_operator() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stuck", choices=("this", "neighbour"), required=True)
    stuck = parser.parse_args().stuck
    role = "neighbour" if NEIGHBOUR in os.environ else "this"
    if role == "this" and os.environ["RANK"] == "0":
        start_neighbour()
    rank = progress.start()
    progress.train(50)
    if role == stuck and rank == 1:
        wait_for_operator()
    progress.train(600)
    progress.finish()


if __name__ == "__main__":
    main()
