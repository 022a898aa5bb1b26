"""Groups of one name and the same ranks under different epochs.

An epoch counts how often a process has made such a group. A probe that was loaded late has not seen
the first of them made, and so two ranks of one group may report it as two: that a rank is not in
the one, while it waits in the other, accuses it of nothing.
"""

from __future__ import annotations

from hangwatch_server.diagnose import process
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView


def waits_in_one(survey: Survey, group: GroupView, rank: int) -> bool:
    """Whether a member that does not report this group waits in a namesake of it."""
    beat = survey.beat(rank)
    if beat is None or survey.fate(rank) not in process.RUNNING or survey.stands_elsewhere(rank):
        return False
    return any(
        said.gid in survey.standings.with_fronts
        and _is_namesake(survey.snapshot.groups.get(said.gid), group)
        and bool(survey.standings[said.gid][rank].fronts)
        for said in beat.groups
    )


def _is_namesake(other: GroupView | None, group: GroupView) -> bool:
    return (
        other is not None
        and other.epoch != group.epoch
        and other.name == group.name
        and other.ranks == group.ranks
    )
