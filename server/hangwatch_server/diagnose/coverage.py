"""How many of a job's ranks are heard now: every verdict says of how much it was made."""

from __future__ import annotations

from collections.abc import Collection

from hangwatch_server import ranges
from hangwatch_server.model import Coverage, Link, Snapshot


def coverage(snapshot: Snapshot) -> Coverage:
    """How many ranks are heard, and which are not."""
    silent = [
        rank
        for rank, view in snapshot.ranks.items()
        if view.beat is None or view.link is not Link.LIVE
    ]
    heard = len(snapshot.ranks) - len(silent)
    return Coverage(
        reporting=heard, world_size=snapshot.world_size, silent=_named(snapshot, silent)
    )


def _named(snapshot: Snapshot, silent: Collection[int]) -> str:
    """The silent with those that the snapshot does not list, none of which is listed here either:
    there may be very many."""
    if len(snapshot.ranks) >= snapshot.world_size:
        return ranges.text(silent)
    heard = sorted(snapshot.ranks.keys() - silent)
    edges = zip([-1, *heard], [*heard, snapshot.world_size], strict=True)
    spans = ((before + 1, after - 1) for before, after in edges if after - before > 1)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
