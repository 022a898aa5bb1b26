"""One rank sleeps uninterruptibly, as in a read from a network disk that does not answer."""

from __future__ import annotations

import ctypes

import progress
import uninterruptible


def read_from_network_disk(library: ctypes.CDLL) -> None:
    library.wait_for_child()


def main() -> None:
    library = uninterruptible.library()
    rank = progress.start()
    progress.train(10)
    if rank == 3:
        read_from_network_disk(library)
    progress.train(1000)


if __name__ == "__main__":
    main()
