"""A node's ranks as one full heartbeat, made anew from the board, for a server that begins to hear.

An agent sends each group and each unchanged entry once per connection; whoever comes later gets
them from here.
"""

from __future__ import annotations

from collections.abc import Iterable

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.board.jobs import BoardJob
from hangwatch_server.model import GroupView


def heartbeat(node: str, jobs: Iterable[BoardJob], dropped: int, heard_s: float) -> wire.Heartbeat:
    """All that the node's newest heartbeat listed; ages are as of that heartbeat, `heard_s`.

    What NCCL RAS has answered speaks for a whole job: it goes with the node that brought it.
    """
    launches: list[wire.Launch] = []
    ranks: list[wire.RankBeat] = []
    groups: list[wire.GroupInfo] = []
    answers: list[wire.RasReport] = []
    for job in jobs:
        slots = (job.slots[rank] for rank in sorted(job.by_node.get(node, ())))
        beats = [slot.beat for slot in slots if slot.absent_since_s is None]
        if not beats:
            continue
        launches.append(job.launch)
        ranks.extend(beats)
        used = {gid for beat in beats for gid in _groups_of(beat)}
        known = (job.groups[gid] for gid in sorted(used) if gid in job.groups)
        groups.extend(_described(job.launch.key, group) for group in known)
        answer = job.ras.brought_by(node, heard_s)
        answers.extend([answer] if answer is not None else [])
    return wire.Heartbeat(
        number=0,
        launches=tuple(launches),
        ranks=tuple(ranks),
        groups=tuple(groups),
        is_full=True,
        dropped=dropped,
        ras=tuple(answers),
    )


def _groups_of(beat: wire.RankBeat) -> Iterable[str]:
    yield from (group.gid for group in beat.groups)
    yield from (call.gid for call in beat.calls)


def _described(launch: str, group: GroupView) -> wire.GroupInfo:
    return wire.GroupInfo(
        gid=group.gid,
        launch=launch,
        name=group.name,
        description=group.description,
        backend=group.backend,
        ranks=ranges.text(group.ranks),
        epoch=group.epoch,
        timeout_s=group.timeout_s,
    )
