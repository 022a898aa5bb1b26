"""Who asks NCCL RAS about a job whose rank 0 is out of reach.

The agent of rank 0's node asks by itself. While that node is silent, or runs no agent, the server
appoints the node of the lowest rank that is heard, again and again for a minute each.
"""

from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server import process_states
from hangwatch_server.model import Link, RankView, Snapshot

FOR_S = 60.0
RENEW_S = 30.0


class Appointments:
    """Remembers when each job's agent was last appointed; nothing durable."""

    def __init__(self) -> None:
        self._renew_s: dict[str, float] = {}

    def due(self, snapshot: Snapshot) -> str | None:
        """The node to appoint now, or None."""
        if snapshot.taken_s < self._renew_s.get(snapshot.job, float("-inf")):
            return None
        node = _needed(snapshot)
        if node is not None:
            self._renew_s[snapshot.job] = snapshot.taken_s + RENEW_S
        return node

    def forget(self, job: str) -> None:
        self._renew_s.pop(job, None)


def _needed(snapshot: Snapshot) -> str | None:
    """The node of the lowest rank that is heard, where RAS can tell more and rank 0 is not."""
    heard = [view for view in snapshot.ranks.values() if _is_heard(view)]
    if not heard or all(_has_probe(view) for view in heard):
        return None
    first = min(heard, key=lambda view: view.rank)
    return None if first.rank == 0 else first.node


def _is_heard(view: RankView) -> bool:
    beat = view.beat
    if beat is None or view.link is not Link.LIVE:
        return False
    return not process_states.has_ended(beat.process)


def _has_probe(view: RankView) -> bool:
    return view.beat is not None and view.beat.depth is wire.Depth.PROBE
