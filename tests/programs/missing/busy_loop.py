"""One rank computes on and on in Python: it works, but does not come to the next all_reduce."""

from __future__ import annotations

import progress


def search_for_duplicates() -> None:
    count = 0
    while True:
        count += 1


def main() -> None:
    rank = progress.start()
    progress.train(20)
    if rank == 1:
        search_for_duplicates()
    progress.train(1000)


if __name__ == "__main__":
    main()
