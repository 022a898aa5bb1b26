"""One rank calls a C function that keeps the interpreter lock and does not return."""

from __future__ import annotations

import ctypes

import progress


def tokenize_in_c() -> None:
    ctypes.PyDLL(None).sleep(3600)  # PyDLL, unlike CDLL, keeps the interpreter lock during the call


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 2:
        tokenize_in_c()
    progress.train(1000)


if __name__ == "__main__":
    main()
