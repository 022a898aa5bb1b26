"""One rank's process is there but never reaches init_process_group: it waits for its data set."""

from __future__ import annotations

import os
import time

import progress


def load_dataset() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    progress.mark()
    if os.environ["RANK"] == "3":
        load_dataset()
    progress.start()


if __name__ == "__main__":
    main()
