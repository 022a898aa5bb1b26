"""One node on the board: when its agent was last heard, and what link state follows from that."""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_agent import wire
from hangwatch_server.model import Link


@dataclass(slots=True)
class BoardNode:
    name: str
    hello: wire.Hello
    heard_s: float
    is_connected: bool = True
    dropped: int = 0
    jobs: set[str] = field(default_factory=set)
    is_full: bool = False  # it has as many jobs as a node may have, and had one more
    clock_ahead_s: float | None = None

    def link(self, now_s: float, late_s: float, lost_s: float) -> Link:
        """A closed connection is late at once, and lost when it did not come back in time."""
        age_s = now_s - self.heard_s
        if age_s > lost_s:
            return Link.LOST
        return Link.LIVE if self.is_connected and age_s <= late_s else Link.LATE
