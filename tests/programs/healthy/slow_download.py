"""Healthy: rank 1 reads what a program downloads slowly, 100 KiB a second; the others wait."""

from __future__ import annotations

import subprocess
import sys

import progress

DOWNLOAD = """
import sys, time
for _ in range(125):
    sys.stdout.buffer.write(bytes(20 * 1024))
    sys.stdout.buffer.flush()
    time.sleep(0.2)
"""


def fetch_weights() -> None:
    command = f"{sys.executable} -c '{DOWNLOAD}' | cat > /dev/null"
    subprocess.run(["sh", "-c", command], check=True)


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 1:
        fetch_weights()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
