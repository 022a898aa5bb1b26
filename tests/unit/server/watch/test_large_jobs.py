"""A large job whose agents connect one after another: nothing wrong is said of it meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import pytest
from tests.unit.server.board import beats

from hangwatch_agent import wire
from hangwatch_server import detect, diagnose
from hangwatch_server.board import MemoryBoard
from hangwatch_server.detect import DetectSettings, Memory
from hangwatch_server.model import Snapshot, State

WORLD, PER_NODE = 4096, 8
NODES = WORLD // PER_NODE
WHOLE_S = 60.0
GID = wire.gid_of(beats.KEY, "default_pg", f"0-{WORLD - 1}", 1)
GROUP = wire.GroupInfo(
    gid=GID, launch=beats.KEY, name="default_pg", description="", backend="nccl",
    ranks=f"0-{WORLD - 1}",
)  # fmt: skip
Do = Callable[[int, float], wire.RankBeat]
CALM = {State.STARTING, State.UNKNOWN, State.HEALTHY}


def training(number: int, now_s: float) -> wire.RankBeat:
    counter = 10 + int(now_s)
    group = wire.GroupBeat(gid=GID, counter=counter, stall_s=0.2, seq=counter)
    beat = beats.rank(number, world=WORLD, groups=[group])
    return msgspec.structs.replace(beat, is_initialised=True, depth=wire.Depth.PROBE)


def meeting(number: int, now_s: float) -> wire.RankBeat:
    """It has come to init_process_group, and all others have as well: they are not seen yet."""
    wait = wire.InitWait(what="init_process_group", age_s=now_s, expected=WORLD, stage="group")
    beat = beats.rank(number, world=WORLD, certain=False)
    return msgspec.structs.replace(beat, depth=wire.Depth.PROBE, waits=(wait,))


def heard(board: MemoryBoard, nodes: Iterable[int], do: Do, now_s: float) -> Snapshot:
    """A heartbeat of each of these nodes."""
    for node in nodes:
        name = f"node-{node}"
        ranks = [do(number, now_s) for number in range(node * PER_NODE, (node + 1) * PER_NODE)]
        board.hello(name, wire.Hello(protocol=1, node=name, version="0"), now_s)
        board.apply(name, beats.heartbeat(ranks, groups=[GROUP]), now_s)
    snapshot = board.snapshot(beats.JOB, now_s)
    assert snapshot is not None
    return snapshot


@pytest.mark.parametrize("do", [training, meeting])
@pytest.mark.parametrize("is_reversed", [False, True], ids=["lowest first", "highest first"])
def test_nothing_is_called_hung_while_the_agents_of_a_large_job_connect(
    do: Do, is_reversed: bool
) -> None:
    board, memory, limits = MemoryBoard(), Memory(), DetectSettings()
    order = range(NODES - 1, -1, -1) if is_reversed else range(NODES)
    looks: list[tuple[Snapshot, State]] = []

    for count in (1, 40, NODES // 8, NODES // 2, NODES):
        snapshot = heard(board, order[:count], do, WHOLE_S * count / NODES)
        finding = diagnose.diagnose(snapshot)[0]
        memory, decision = detect.step(memory, snapshot, finding, limits)
        looks.append((snapshot, decision.state))

    listed = [len(snapshot.ranks) for snapshot, _ in looks]
    seen = [sum(view.beat is not None for view in snapshot.ranks.values()) for snapshot, _ in looks]
    states = [state for _, state in looks]
    assert seen == [8, 320, WORLD // 8, WORLD // 2, WORLD]
    assert listed[0] < listed[1] < listed[2] < listed[3] == listed[4] == WORLD
    assert {snapshot.world_size for snapshot, _ in looks} == {WORLD}
    if do is training:
        assert set(states) <= CALM
        assert states[-1] is State.HEALTHY
    else:
        assert State.HUNG not in states
        assert diagnose.diagnose(looks[-1][0])[0].culprits == ()
