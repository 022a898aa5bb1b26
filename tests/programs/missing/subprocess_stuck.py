"""One rank runs a tool that does not end, here to tokenize, and waits for it."""

from __future__ import annotations

import subprocess

import progress


def tokenize_with_tool() -> None:
    subprocess.run(["sleep", "100000"], check=True)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 2:
        tokenize_with_tool()
    progress.train(1000)


if __name__ == "__main__":
    main()
