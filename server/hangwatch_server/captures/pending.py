"""Which ranks of a capture under way have not answered yet. Memory only; rows are the service's."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hangwatch_agent import wire
from hangwatch_server.model import Capture


@dataclass(slots=True)
class Pending:
    """A capture under way."""

    capture: Capture
    launch: str
    deadline_s: float  # monotonic
    waiting: dict[int, str]  # rank -> node, until its part is durable
    nodes: dict[int, str]  # rank -> node of all ranks asked
    missing: int = 0  # ranks that will not answer
    answered: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, rank: int, *, is_missing: bool) -> None:
        """Note that nothing more is expected of `rank`."""
        if self.waiting.pop(rank, None) is not None:
            self.missing += is_missing
            self.answered += not is_missing


def absent_part(
    capture: str, launch: str, rank: int, pid: int, why: str, remedy: str
) -> wire.CapturePart:
    """The part that stands for a rank that did not answer."""
    return wire.CapturePart(
        capture=capture, launch=launch, rank=rank, pid=pid, age_s=0.0, reason=why, remedy=remedy
    )
