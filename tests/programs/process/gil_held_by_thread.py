"""A helper thread of one rank keeps the interpreter lock inside C; the main thread cannot go on."""

from __future__ import annotations

import ctypes
import threading

import progress


def count_tokens_in_c() -> None:
    ctypes.PyDLL(None).sleep(3600)  # PyDLL, unlike CDLL, keeps the interpreter lock during the call


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        threading.Thread(target=count_tokens_in_c, daemon=True).start()
    progress.train(1000)


if __name__ == "__main__":
    main()
