"""One rank takes more memory than its control group allows, and the kernel kills it.

Where this process may not make a control group of its own, it sends itself what the kernel would
have sent: then nothing says why, and only the signal is known.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import left_alone
import progress

ROOT = Path("/sys/fs/cgroup")
LIMIT_BYTES = 1 << 30  # torch alone takes a third of it
CHUNK_BYTES = 64 << 20


# A control group can be removed once nobody is in it any more, however this job ends.
REMOVE_LATER = '(for i in $(seq 900); do rmdir "$0" 2>/dev/null && exit; sleep 1; done) &'


def enter_group() -> bool:
    """Make a group with a memory limit, of either version, and put this process into it."""
    for parent, limit in (
        (ROOT / "memory", "memory.limit_in_bytes"),
        (ROOT, "memory.max"),
    ):
        group = parent / f"out-of-memory-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(LIMIT_BYTES))
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        subprocess.run(["sh", "-c", REMOVE_LATER, str(group)], env={}, check=True)
        return True
    return False


def take_memory(is_limited: bool) -> None:
    kept: list[bytearray] = []
    while is_limited:
        kept.append(bytearray(os.urandom(1 << 12) * (CHUNK_BYTES >> 12)))
        if len(kept) * CHUNK_BYTES > 2 * LIMIT_BYTES:  # the limit is not enforced here
            break
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    if left_alone.is_launcher():
        left_alone.launch(3)
        return
    is_limited = os.environ["RANK"] == "2" and enter_group()
    rank = progress.start()
    progress.train(20)
    if rank == 2:
        left_alone.leave_connections_open()
        take_memory(is_limited)
    progress.train(1000)


if __name__ == "__main__":
    main()
