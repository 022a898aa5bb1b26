"""How many of a job's ranks are heard now: every verdict says of how much it was made."""

from __future__ import annotations

from hangwatch_server import ranges
from hangwatch_server.model import Coverage, Link, Snapshot


def coverage(snapshot: Snapshot) -> Coverage:
    """How many ranks are heard, and which are not."""
    silent = [
        rank
        for rank, view in snapshot.ranks.items()
        if view.beat is None or view.link is not Link.LIVE
    ]
    return Coverage(
        reporting=snapshot.world_size - len(silent),
        world_size=snapshot.world_size,
        silent=ranges.text(silent),
    )
