"""Merging 200,000 stacks of 16,384 ranks into one tree: python bench/stack_merge.py [stacks]."""

from __future__ import annotations

import statistics
import sys
import time

import msgspec

from hangwatch_agent import wire
from hangwatch_server import stacks

DISTINCT = 13
DEPTH = 14
ROLES = ("main", *["loader"] * 11)  # twelve processes a rank


def _process(rank: int, number: int, kind: int) -> bytes:
    frames = tuple(
        wire.Frame(
            name=f"function_{depth}", file=f"/opt/train/module_{depth}.py", line=depth + kind
        )
        for depth in range(DEPTH)
    )
    pid = rank * 100 + number
    thread = wire.Thread(pid=pid, thread_id=pid, name="MainThread", frames=frames)
    return msgspec.msgpack.encode(
        wire.ProcessStacks(pid=pid, role=ROLES[number], threads=(thread,))
    )


def build(count: int) -> list[stacks.RankStacks]:
    """Decoded one by one, as they come from the wire: no two stacks share an object."""
    decode = msgspec.msgpack.Decoder(wire.ProcessStacks).decode
    width = len(ROLES)
    return [
        stacks.RankStacks(
            rank,
            tuple(
                decode(_process(rank, n, n % DISTINCT + (rank % 997 == 0))) for n in range(width)
            ),
        )
        for rank in range(count // width)
    ]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    parts = build(count)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        roots, classes = stacks.merge(parts)
        times.append(time.perf_counter() - started)
    print(f"{'stacks':>10} {'ranks':>8} {'classes':>8} {'median s':>9} {'best s':>8}  bar 0.5 s")
    median, best = statistics.median(times), min(times)
    print(f"{count:>10} {len(parts):>8} {len(classes):>8} {median:>9.3f} {best:>8.3f}")
    assert roots


if __name__ == "__main__":
    main()
