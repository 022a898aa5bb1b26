"""A rendezvous file left behind by an earlier run that was killed while its ranks were counted.

The new ranks go on counting where the earlier run stopped, so the barrier at the end of
init_process_group never sees the number it waits for: every rank has come, and none gets through.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import progress
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.distributed_c10d import _store_based_barrier

RANKS = 2
EARLIER_RANKS = 3  # of which as many came as the new run has, then somebody killed them
COUNTER = b"store_based_barrier_key:0"  # torch's name for the count, as it stands in the file
WRITES_PER_RANK = 2  # one rank more, then the count asked for by adding nothing


def earlier_run(rank: int, path: Path) -> None:
    """The last thing that init_process_group does, with torch's own store and barrier."""
    store = dist.PrefixStore("default_pg", dist.FileStore(str(path), EARLIER_RANKS))
    _store_based_barrier(rank, store, "0", EARLIER_RANKS, progress.PATIENCE)


def leave_file_behind(path: Path) -> None:
    """Let the earlier run wait for its third rank, and kill it."""
    spawn = mp.get_context("spawn")
    earlier = [spawn.Process(target=earlier_run, args=(rank, path)) for rank in range(RANKS)]
    for process in earlier:
        process.start()
    while not path.exists() or path.read_bytes().count(COUNTER) < WRITES_PER_RANK * RANKS:
        time.sleep(0.1)
    for process in earlier:
        process.kill()
        process.join()


def worker(rank: int, path: Path) -> None:
    progress.mark()
    # Releases before 2.1 always had this barrier; since then it is an option.
    os.environ["TORCH_DIST_INIT_BARRIER"] = "1"
    dist.init_process_group(
        "gloo",
        init_method=path.as_uri(),
        rank=rank,
        world_size=RANKS,
        timeout=progress.PATIENCE,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rendezvous"
        leave_file_behind(path)
        mp.spawn(worker, args=(path,), nprocs=RANKS, join=True)


if __name__ == "__main__":
    main()
