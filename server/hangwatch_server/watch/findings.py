"""Which finding a look goes on with, given the one before: diagnosis itself has no memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hangwatch_server.detect import Memory
from hangwatch_server.model import Finding, Kind


def main(findings: Sequence[Finding], before: Finding, memory: Memory) -> Finding:
    """The weightiest, but that of a confirmed hang while it lasts.

    A younger stall that holds up more ranks would set the clock back, and look like progress.
    """
    if memory.stall is not None and memory.stall.is_hung:
        return next((item for item in findings if item.key == before.key), findings[0])
    return findings[0]


def last(finding: Finding, before: Finding, memory: Memory) -> Finding:
    """Of a job without a process, what was found while one was left: it says why the job ended."""
    is_over = memory.over_since_s is not None
    return before if is_over and before.kind is not Kind.NONE else finding
