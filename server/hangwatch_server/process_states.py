"""What the letters of a process's state mean: who has ended, and who is stopped."""

from __future__ import annotations

from hangwatch_agent.wire import ProcessFacts

GONE = "gone"  # the agent's word for a process that it followed and that is no more
ENDED = frozenset({GONE, "Z", "X"})  # a zombie has ended too: its parent has not asked yet
STOPPED = frozenset({"T", "t"})  # by a signal, by a tracer


def has_ended(process: ProcessFacts) -> bool:
    return process.state in ENDED


def is_stopped(process: ProcessFacts) -> bool:
    """Stopped by others than a capture of ours, which lets it go on in a moment."""
    return process.state in STOPPED and not process.is_being_read
