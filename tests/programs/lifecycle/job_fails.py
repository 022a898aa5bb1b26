"""One rank raises; torchrun ends the others, and the job is over."""

from __future__ import annotations

import progress


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 2:
        raise RuntimeError("the loss is not a number")
    progress.train(1000)


if __name__ == "__main__":
    main()
