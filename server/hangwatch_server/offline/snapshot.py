"""From the files of one job to the snapshot that a watched job gives. Pure.

A dump tells calls and no clock: how long somebody has waited is not known. Whoever made the dumps
did so because nothing moved, so every call that is not finished counts as waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hangwatch_agent import wire
from hangwatch_agent.ras import status as ras_status
from hangwatch_server import ranges, stacks
from hangwatch_server.board import ras as ras_board
from hangwatch_server.model import GroupView, Link, RankView, Snapshot
from hangwatch_server.offline.model import Reading
from hangwatch_server.offline.sorting import Pile

LAUNCH = "offline"
# More than any limit of diagnosis asks for; the wording knows it for "not known".
STALL_S = wire.MAX_AGE_S
# A second answer of RAS comes at least so long after the first, as a person types.
RAS_APART_S = 5.0
MAX_WORLD = 65_536
# Of all groups of a job together. A list of a few characters can name a million ranks, so whoever
# reads it counts first; 16,384 ranks in a mesh of four axes have a hundred thousand.
MAX_MEMBERS = 500_000
_DEFAULT_GROUPS = ("0", "default_pg")


def build(pile: Pile) -> Snapshot:
    """The job as its files show it; ranks without a file are there and silent."""
    size = world_size(pile)
    groups = _groups(pile, size)
    answering = _answering(pile, size)
    views = {rank: _view(pile, rank, answering) for rank in range(size)}
    snapshot = Snapshot(
        job=LAUNCH,
        attempt=1,
        world_size=size,
        ranks=views,
        groups=groups,
        taken_s=0.0,
        age_s=STALL_S,
    )
    return _with_ras(snapshot, pile)


def world_size(pile: Pile) -> int:
    """By the members that torch wrote down, the highest rank with a file, and RAS."""
    highest = [*pile.dumps, *pile.stacks]
    for item in pile.dumps.values():
        listed = item.dump.ranks.values() if item.dump is not None else ()
        highest += [top for text in listed if (top := ranges.highest(text)) is not None]
    sizes = [rank + 1 for rank in highest]
    for item in pile.ras:
        sizes += [one.size for one in item.ras.communicators] if item.ras is not None else []
    return min(max(sizes, default=0), MAX_WORLD)


def parts(found: Mapping[int, list[Reading]], which: int) -> list[stacks.RankStacks]:
    """Per rank its newest stacks (`which` -1), or those before them (-2)."""
    return [
        stacks.RankStacks(rank, items[which].stacks)
        for rank, items in sorted(found.items())
        if len(items) >= -which
    ]


def _groups(pile: Pile, size: int) -> dict[str, GroupView]:
    called: dict[str, set[int]] = {}
    backends: dict[str, str] = {}
    for rank, item in pile.dumps.items():
        if item.dump is not None:
            for name in item.dump.entries:
                called.setdefault(name, set()).add(rank)
            backends.update(item.dump.backends)
    told = _told(pile)
    left = MAX_MEMBERS
    found: dict[str, GroupView] = {}
    for name, callers in called.items():
        members = _members(name, callers, told.get(name, set()), size if left >= size else 0)
        left -= len(members)
        found[name] = GroupView(
            gid=name,
            name=name,
            description="default_pg" if name in _DEFAULT_GROUPS else "",
            backend=backends.get(name, ""),
            ranks=tuple(sorted(members)),
        )
    return found


def _told(pile: Pile) -> dict[str, set[int]]:
    """Members of the groups that were called on, as torch wrote them; each list is read once."""
    lists = {
        (name, item.dump.ranks[name]): None
        for item in pile.dumps.values()
        if item.dump is not None
        for name in item.dump.entries
        if name in item.dump.ranks
    }
    told: dict[str, set[int]] = {}
    left = MAX_MEMBERS
    for name, text in lists:
        left -= ranges.size(text)
        if left < 0:
            break
        told.setdefault(name, set()).update(r for r in ranges.parse(text) if r < MAX_WORLD)
    return told


def _members(name: str, callers: set[int], told: set[int], size: int) -> set[int]:
    """gloo writes no members: its default group is everybody, another one who has called on it.

    A group of one waits for nobody: where only one rank has called, others are missing.
    """
    known = {rank for rank in told if rank < size}
    if known >= callers:
        return known
    is_everybody = name in _DEFAULT_GROUPS or len(callers) < 2
    return callers | set(range(size)) if is_everybody else callers | known


def guessed(pile: Pile) -> tuple[str, ...]:
    """Groups whose members no dump names, so that they are taken from the calls."""
    names: dict[str, bool] = {}
    for item in pile.dumps.values():
        if item.dump is not None:
            for name in item.dump.entries:
                names[name] = names.get(name, False) or name in item.dump.ranks
    return tuple(
        name for name, is_told in names.items() if not is_told and name not in _DEFAULT_GROUPS
    )


def _view(pile: Pile, rank: int, answering: frozenset[int]) -> RankView:
    item, captured = pile.dumps.get(rank), pile.stacks.get(rank, [])
    if item is None and not captured and rank not in answering:
        return RankView(rank=rank, node="", link=Link.LOST, age_s=0.0, beat=None)
    pid = captured[-1].stacks[0].pid if captured else 0
    samples = [
        stacks.Sample(
            part=wire.CapturePart(
                capture="", launch=LAUNCH, rank=rank, pid=pid, age_s=0.0, stacks=one.stacks
            ),
            taken_s=float(index - len(captured)),
            capture="",
        )
        for index, one in enumerate(captured)
    ]
    return RankView(
        rank=rank,
        node="",
        link=Link.LIVE,
        age_s=0.0,
        beat=_beat(rank, pid, item),
        stack=stacks.facts(samples, 0.0),
    )


def _beat(rank: int, pid: int, item: Reading | None) -> wire.RankBeat:
    entries = item.dump.entries if item is not None and item.dump is not None else {}
    return wire.RankBeat(
        launch=LAUNCH,
        rank=rank,
        local_rank=rank,
        world_size=0,
        pid=pid,
        start_ticks=0,
        process=wire.ProcessFacts(state="S"),
        depth=wire.Depth.PROBE if item is not None else wire.Depth.BARE,
        is_rank_certain=True,
        is_initialised=item is not None,
        groups=tuple(_group(name, of_group) for name, of_group in entries.items()),
    )


def _group(name: str, entries: tuple[wire.Entry, ...]) -> wire.GroupBeat:
    newest = entries[-1].seq
    return wire.GroupBeat(
        gid=name,
        counter=newest,
        stall_s=STALL_S,
        seq=newest,
        entries=entries,
        entries_age_s=1.0,
        are_entries_current=True,
    )


def _answering(pile: Pile, size: int) -> frozenset[int]:
    """Ranks whose process answers RAS, by communicators of the whole job."""
    away = (wire.RasState.DEAD, wire.RasState.UNRESPONSIVE)
    return frozenset(
        member.rank
        for item in pile.ras
        if item.ras is not None
        for one in item.ras.communicators
        if one.size == size
        for member in one.members
        if member.state not in away
    )


def _without_processes(status: ras_status.Status) -> ras_status.Status:
    """No pid can be looked up here; without one, a member of the whole job is its rank."""
    return replace(
        status,
        communicators=[
            replace(one, members=[replace(member, pid=-1) for member in one.members])
            for one in status.communicators
        ],
    )


def _with_ras(snapshot: Snapshot, pile: Pile) -> Snapshot:
    """RAS numbers the members of a communicator of the whole job as the job does."""
    book = ras_board.RasBook()
    for number, item in enumerate(pile.ras):
        if item.ras is not None:
            told = ras_status.report(_without_processes(item.ras), LAUNCH, number + 1, 0.0)
            book.take(told, "", number * RAS_APART_S)
    now_s = len(pile.ras) * RAS_APART_S
    views = book.views({}, {}, snapshot.groups, snapshot.world_size, 0, now_s)
    return replace(
        snapshot,
        groups={**{view.gid: ras_board.group_of(view) for view in views}, **snapshot.groups},
        ras=views,
    )
