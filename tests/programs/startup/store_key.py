"""One rank waits in the job's store for a key that nobody sets: the address of a helper."""

from __future__ import annotations

import progress
from torch.distributed.distributed_c10d import _get_default_store


def find_helper() -> bytes:
    store = _get_default_store()
    store.set_timeout(progress.PATIENCE)
    return store.get("address of the helper")


def main() -> None:
    rank = progress.start()
    if rank == 1:
        find_helper()
    progress.train(1000)


if __name__ == "__main__":
    main()
