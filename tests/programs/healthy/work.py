"""Real work of a given length: what a rank does that is busy, not stuck."""

from __future__ import annotations

import time


def compute(seconds: float) -> int:
    """Keep one core busy."""
    until_s = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < until_s:
        rounds = (rounds * 31 + 7) % 1_000_003
    return rounds
