"""One rank was given another port, so it looks for the rendezvous where nobody listens."""

from __future__ import annotations

import os

import progress


def main() -> None:
    progress.mark()
    if os.environ["RANK"] == "3":
        os.environ["MASTER_PORT"] = "1"
    progress.start()


if __name__ == "__main__":
    main()
