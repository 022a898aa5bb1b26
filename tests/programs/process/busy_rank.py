"""One rank computes in a Python loop that does not end: it works, and holds the others up."""

from __future__ import annotations

import progress


def fit_tokenizer() -> None:
    merges = 0
    while True:
        merges = (merges + 1) % 1_000_003


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        fit_tokenizer()
    progress.train(1000)


if __name__ == "__main__":
    main()
