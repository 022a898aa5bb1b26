"""What detection says of a simulated job on NCCL groups, second by second on a fake clock.

All its ranks wait for their GPUs, which spin at full load: no stack shows a collective.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from hangwatch_agent import wire
from hangwatch_server import detect, diagnose, ranges
from hangwatch_server.model import (
    Activity,
    GroupView,
    Kind,
    Link,
    RankView,
    Snapshot,
    StackFacts,
    State,
)
from hangwatch_server.simulate import faults
from hangwatch_server.simulate.faults import Fault
from hangwatch_server.simulate.play import Play

RANKS = 16
LAUNCH = wire.Launch(key="k", name="n")
FAULT_S = 20.0
Beat = Callable[[int, float], wire.RankBeat]


def play(fault: Fault) -> Play:
    return Play(faults.scene(fault, RANKS, 2), LAUNCH, fault_after_s=FAULT_S)


def judged(playing: Play, beat: Beat, until_s: int) -> list[tuple[int, State, Kind]]:
    """State and kind of each second; every rank is seen waiting for its GPU once it stands."""
    groups = {
        info.gid: GroupView(
            gid=info.gid,
            name=info.name,
            description=info.description,
            backend=info.backend,
            ranks=ranges.parse(info.ranks),
        )
        for info in playing.groups(range(RANKS))
    }
    memory, said = detect.Memory(), []
    for at_s in range(1, until_s):
        beats = [beat(rank, float(at_s)) for rank in range(RANKS)]
        views = {item.rank: _view(item) for item in beats}
        snapshot = Snapshot(
            job="job",
            attempt=1,
            world_size=RANKS,
            ranks=views,
            groups=groups,
            taken_s=1000.0 + at_s,
            age_s=600.0,
        )
        found = diagnose.diagnose(snapshot)[0]
        memory, decision = detect.step(memory, snapshot, found)
        said.append((at_s, decision.state, found.kind))
    return said


def _view(beat: wire.RankBeat) -> RankView:
    stood_s = min(group.stall_s for group in beat.groups)
    leaf = "__init__.py:1083 in synchronize"
    stack = StackFacts(
        pid=beat.pid,
        age_s=0.5,
        where="loop.py:97 in reduce_loss",
        leaf=leaf,
        activity=Activity.GPU,
        same_leaf_captures=max(1, int(stood_s / 2)),
        same_leaf_s=max(0.0, stood_s - 1.0),
        capture=f"c{stood_s:.0f}",
    )
    seen = stack if stood_s >= 1.0 else None
    return RankView(rank=beat.rank, node="n", link=Link.LIVE, age_s=0.0, beat=beat, stack=seen)


def test_ring_of_nccl_groups_is_hung_by_hard_evidence() -> None:
    playing = play(Fault.DEADLOCK)

    said = judged(playing, playing.beat, 40)

    hung_s = next(at_s for at_s, state, _ in said if state is State.HUNG)
    assert FAULT_S + 5.0 <= hung_s <= FAULT_S + 10.0
    assert {kind for at_s, _, kind in said if at_s >= hung_s} == {Kind.DEADLOCK}


def ahead(playing: Play, pause_s: float) -> Beat:
    """A healthy job whose GPUs are in long kernels: each call is queued, and none has finished."""

    def beat(rank: int, at_s: float) -> wire.RankBeat:
        said = playing.beat(rank, at_s - at_s % pause_s)
        groups = tuple(_ahead(group, at_s % pause_s) for group in said.groups)
        return msgspec.structs.replace(said, groups=groups)

    return beat


def _ahead(group: wire.GroupBeat, stall_s: float) -> wire.GroupBeat:
    number = group.counter + 1
    entry = wire.Entry(
        seq=number, op="all_reduce", is_retired=False, record_id=number, input_sizes=((4,),)
    )
    return msgspec.structs.replace(
        group,
        counter=number,
        seq=number,
        stall_s=stall_s,
        entries=(entry,),
        entries_age_s=0.0,
        are_entries_current=True,
    )


@pytest.mark.parametrize("pause_s", [4.0, 13.0])
def test_processors_that_are_ahead_of_busy_gpus_are_never_hung(pause_s: float) -> None:
    playing = play(Fault.HEALTHY)

    said = judged(playing, ahead(playing, pause_s), 60)

    assert State.HUNG not in {state for _, state, _ in said}
