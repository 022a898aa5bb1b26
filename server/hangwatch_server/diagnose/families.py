"""Groups of a job that are told apart by a number alone, as one line each; and lags within them.

At ten thousand ranks nobody reads a table of all groups: "64 dp groups, all at #1042" says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hangwatch_server import garbage
from hangwatch_server.diagnose import survey
from hangwatch_server.diagnose.settings import DEFAULT
from hangwatch_server.model import Family, GroupRow, Lag, Snapshot


def families(rows: Iterable[GroupRow]) -> tuple[Family, ...]:
    """The families of these groups, in the order of their first ones."""
    found: dict[tuple[str, int], list[GroupRow]] = {}
    for row in rows:
        found.setdefault((row.family, row.size), []).append(row)
    return tuple(_family(name, size, members) for (name, size), members in found.items())


def members(rows: Iterable[GroupRow], family: str) -> tuple[GroupRow, ...]:
    """The groups of that family, of any size."""
    return tuple(row for row in rows if row.family == family)


def lags(snapshot: Snapshot, gids: Sequence[str]) -> tuple[Lag, ...]:
    """How far each member is behind the front of its group; of several, behind the furthest."""
    with garbage.uncollected():
        looked = survey.survey(snapshot, DEFAULT)
        found: dict[int, Lag] = {}
        for gid in gids:
            standings = looked.standings.get(gid, {})
            entered = {rank: held.entered for rank, held in standings.items()}
            front = max((seq for seq in entered.values() if seq is not None), default=None)
            for rank in snapshot.groups[gid].ranks:
                seq = entered.get(rank)
                lag = front - seq if front is not None and seq is not None else None
                known = found.get(rank)
                if known is None or (lag is not None and lag > (known.lag or 0)):
                    found[rank] = Lag(rank=rank, gid=gid, seq=seq, lag=lag)
        return tuple(found[rank] for rank in sorted(found))


def _family(name: str, size: int, members: Sequence[GroupRow]) -> Family:
    known = [row.at for row in members if row.at is not None]
    return Family(
        name=name,
        size=size,
        count=len(members),
        at_least=min(known, default=None),
        at_most=max(known, default=None),
        stalled=sum(bool(row.waiting) for row in members),
    )
