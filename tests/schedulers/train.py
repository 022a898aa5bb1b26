"""Trains a while; on a node whose marker lies in BAD_NODES it sleeps uninterruptibly for ever.

As on a node with a bad disk: the same program goes through on any other node.
"""

from __future__ import annotations

import os
from pathlib import Path

import progress
import uninterruptible


def main() -> None:
    is_bad = Path(os.environ["BAD_NODES"], os.environ["SLURMD_NODENAME"]).exists()
    library = uninterruptible.library() if is_bad else None
    progress.start()
    progress.train(15)
    if library is not None:
        library.wait_for_child()
    progress.train(5)
    progress.finish()


if __name__ == "__main__":
    main()
