"""One rank takes more memory than its control group allows, and the kernel kills it.

Where this process may not make a control group of its own, it sends itself what the kernel would
have sent: then nothing says why, and only the signal is known.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import left_alone
import progress

ROOT = Path("/sys/fs/cgroup")
LIMIT_BYTES = 1 << 30  # torch alone takes a third of it
CHUNK_BYTES = 64 << 20


def enter_group() -> Path | None:
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
            remove(group)
            continue
        return group
    return None


def remove(group: Path) -> None:
    if group.is_dir():
        try:
            group.rmdir()
        except OSError as error:
            print(f"the control group {group} is left behind: {error}", flush=True)


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
        for group in (*ROOT.glob("out-of-memory-*"), *(ROOT / "memory").glob("out-of-memory-*")):
            remove(group)
        return
    group = enter_group() if os.environ["RANK"] == "2" else None
    rank = progress.start()
    progress.train(20)
    if rank == 2:
        left_alone.leave_connections_open()
        take_memory(group is not None)
    progress.train(1000)


if __name__ == "__main__":
    main()
