"""Pending rendezvous: init_process_group and new_group calls that wait for ranks to come.

No sequence numbers exist yet. Expected are as many ranks as the waiting calls say. How far a rank
has come has levels: no process, a process that is elsewhere, connecting to the store, inside the
call, past it. The missing at the lowest level are the ones that are waited for. Groups are created
in the same order by all ranks, so a rank that has begun fewer of them is behind those that wait,
and creations with different numbers are different calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from hangwatch_agent.wire import Entry, InitWait, RankBeat
from hangwatch_server import ranges
from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Activity

INIT = "init_process_group"
SUBGROUP = "new_group"  # and what calls it: new_subgroups, split_group
_MOST_UNSEEN = 1024  # ranks; what a job says of itself is bounded before it is counted through
_STORE_HOST = 0  # keeps the store, and waits there until all others have connected


class Level(IntEnum):
    """How far a rank has come, the furthest last."""

    GONE = 0  # also when no process of it was ever seen
    ELSEWHERE = 1
    AT_STORE = 2
    THERE = 3
    UNKNOWN = 4


class Call(NamedTuple):
    """Waits for one and the same rendezvous; `number` of a creation where it is known."""

    what: str
    number: int | None


Waits = dict[int, tuple[InitWait, float]]  # rank -> its wait and for how long


def pending(survey: Survey) -> list[PendingOp]:
    waits: dict[Call, Waits] = {}
    for rank, view in survey.snapshot.ranks.items():
        if view.beat is None or not view.beat.waits or survey.fate(rank) is Fate.GONE:
            continue
        wait = view.beat.waits[0]
        if wait.what == INIT and has_restarted(survey, rank):
            continue  # nobody is on the way to meet it
        what = INIT if wait.what == INIT else SUBGROUP
        number = view.beat.groups_begun if what == SUBGROUP else None
        waits.setdefault(Call(what, number), {})[rank] = (wait, wait.age_s + view.age_s)
    return [
        _op(survey, call, inside)
        for call, inside in waits.items()
        if max(age_s for _, age_s in inside.values()) >= survey.settings.stable_after_s
    ]


def has_restarted(survey: Survey, rank: int) -> bool:
    """A new process begins again while its peers still wait in groups that its old one was in.

    A group is made by all of its members together; only a file left over from an earlier run can
    make some believe that it is complete, as long as nothing was ever finished in it.
    """
    beat = survey.beat(rank)
    if beat is None or beat.is_initialised or not any(w.what == INIT for w in beat.waits):
        return False
    is_file = any(wait.detail.startswith("file:") for wait in beat.waits)
    return rank in survey.outsiders_of_used(1 if is_file else -1)


def _op(survey: Survey, call: Call, inside: Waits) -> PendingOp:
    expected, is_sure = _expected(survey, call.what, inside)
    levels = _levels(survey, call, inside, expected)
    missing: Iterable[int] = levels[Level.GONE]
    unknown = levels[Level.UNKNOWN]
    if not missing and is_sure:
        missing = levels[Level.ELSEWHERE]
    elif not is_sure:
        unknown = sorted([*unknown, *levels[Level.ELSEWHERE], *missing])
        missing = ()
    if not missing and not unknown:
        missing = levels[Level.AT_STORE]
    have: dict[int, Entry | None] = dict.fromkeys(r for r in inside if r not in set(missing))
    return PendingOp(
        form=Form.RENDEZVOUS,
        op=call.what,
        have=have,
        absent=tuple(missing),
        unknown=() if missing else tuple(unknown),
        stalled_s=max(age_s for _, age_s in inside.values()),
        detail=_details(inside),
    )


def _levels(survey: Survey, call: Call, inside: Waits, expected: int) -> dict[Level, list[int]]:
    present = set(inside)
    present.update(wait.rank for wait, _ in inside.values() if wait.rank is not None)
    levels: dict[Level, list[int]] = {level: [] for level in Level}
    for rank in _awaited(survey, expected):
        if rank not in present:
            levels[_level(survey, call, rank)].append(rank)
    connecting = [rank for rank, (wait, _) in inside.items() if wait.stage == "store"]
    if len(connecting) < len(inside):  # the others are through, so the store can be reached
        levels[Level.AT_STORE] = sorted(rank for rank in connecting if rank != _STORE_HOST)
    behind = {*levels[Level.AT_STORE], *_elsewhere(inside)}
    # Somebody must be there to wait for them; all of them behind means that nobody is.
    levels[Level.AT_STORE] = sorted(behind) if len(behind) < len(inside) else []
    return levels


def _awaited(survey: Survey, expected: int) -> Iterable[int]:
    """Of a job that says it is far larger than what is seen of it, those that are looked at."""
    listed = survey.snapshot.ranks
    if len(listed) >= survey.snapshot.world_size:
        return range(expected)
    return [rank for rank in listed if rank < expected]


def _details(inside: Waits) -> str:
    """Where they wait; of several places each with its ranks."""
    places: dict[str, list[int]] = {}
    for rank, (wait, _) in inside.items():
        if wait.detail:
            places.setdefault(wait.detail, []).append(rank)
    if len(places) < 2:
        return next(iter(places), "")
    ordered = sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))[:4]
    return ", ".join(f"{place} ({ranges.named(ranks)})" for place, ranks in ordered)


def _elsewhere(inside: Waits) -> list[int]:
    """Ranks that wait at another port than most do; names of hosts may differ and mean the same."""
    ports = {rank: _port(wait.detail) for rank, (wait, _) in inside.items()}
    said = Counter(port for port in ports.values() if port)
    if len(said) < 2:
        return []
    usual, count = said.most_common(1)[0]
    if 2 * count <= sum(said.values()):
        return []
    return [rank for rank, port in ports.items() if port not in ("", usual)]


def _port(detail: str) -> str:
    port = detail.rpartition(":")[2]
    return port if port.isdecimal() else ""


def _expected(survey: Survey, what: str, inside: Waits) -> tuple[int, bool]:
    """How many ranks are waited for, and whether any rank that is not there is surely one of them.

    new_group says the size of the group, but waits for the whole world, unless it was called with
    use_local_synchronization; more waiting ranks than members rule that out.
    """
    said = Counter(sorted(wait.expected for wait, _ in inside.values()))
    asked = said.most_common(1)[0][0]  # one that says otherwise is alone with it
    world = survey.snapshot.world_size
    if what == INIT:
        beats = (view.beat for view in survey.snapshot.ranks.values())
        is_known = any(beat is not None and beat.is_initialised for beat in beats)
        most = world if is_known else 4 * world + _MOST_UNSEEN
        return min(asked if asked > 0 else world, most), True
    return world, asked in (0, world) or len(inside) > asked


def _level(survey: Survey, call: Call, rank: int) -> Level:
    view, beat, fate = survey.view(rank), survey.beat(rank), survey.fate(rank)
    if beat is None and view is not None and view.node:
        return Level.UNKNOWN  # it had a process before this server started
    if beat is None or fate is Fate.GONE:
        return Level.GONE
    if call.what == INIT and (beat.is_initialised or beat.is_destroyed):
        return Level.THERE
    if _is_inside(survey, rank):
        return Level.THERE
    begun = beat.groups_begun
    if call.number is not None and begun is not None and begun >= call.number:
        return Level.THERE  # it has made this group, and gone on
    if fate in (Fate.SILENT, Fate.LATE) or not _can_tell(survey, beat, rank):
        return Level.UNKNOWN
    return Level.ELSEWHERE


def _is_inside(survey: Survey, rank: int) -> bool:
    stack = survey.stack(rank)
    return stack is not None and stack.activity is Activity.RENDEZVOUS


def _can_tell(survey: Survey, beat: RankBeat, rank: int) -> bool:
    return standing.has_probe(beat) or survey.is_outside(rank)
