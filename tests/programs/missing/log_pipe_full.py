"""One rank writes its log into a pipe whose reader hangs: the pipe is full and the write waits."""

from __future__ import annotations

import os

import progress


def write_log(pipe: int) -> None:
    while True:
        os.write(pipe, b"loss 0.25\n" * 100)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    _reader, pipe = os.pipe()
    if rank == 1:
        write_log(pipe)
    progress.train(1000)


if __name__ == "__main__":
    main()
