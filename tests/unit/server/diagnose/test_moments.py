"""What is kept of a hang: groups, facts of who it turns on, last calls by class, signs of nodes."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose, moment
from hangwatch_server.model import Link, Moment, Snapshot

AT = datetime(2026, 11, 20, 18, 0, 3, tzinfo=UTC)


def _kept(snapshot: Snapshot) -> Moment:
    return moment(snapshot, diagnose(snapshot)[0], AT, "opened")


def _one_missing(**beat: object) -> Snapshot:
    """Rank 1 of four has not entered all_reduce #6 of the default group."""
    views = [make.rank(r, make.at("world", 5, 6)) for r in range(4) if r != 1]
    culprit = make.rank(1, make.at("world", 5), **beat)  # type: ignore[arg-type]
    return make.snapshot([*views, culprit], [make.world(0, 1, 2, 3), make.group("idle", (0, 1))])


def test_ranks_with_the_same_calls_share_a_lane_and_the_odd_one_comes_first() -> None:
    kept = _kept(_one_missing())

    assert [(lane.ranks, lane.entered, lane.group) for lane in kept.lanes] == [
        ("1", 5, "default_pg"),
        ("0,2-3", 6, "default_pg"),
    ]
    assert [(call.seq, call.is_finished) for call in kept.lanes[1].calls][-2:] == [
        (5, True),
        (6, False),
    ]
    assert kept.lanes[1].calls[-1].shape == "[4] float"


def test_only_groups_that_somebody_waits_in_are_kept() -> None:
    kept = _kept(_one_missing())

    assert [(group.gid, group.behind) for group in kept.groups] == [("world", "1")]
    assert kept.groups_total == 2


def test_process_and_gpu_of_the_culprit_are_kept() -> None:
    child = wire.ChildFacts(pid=9, name="python", role="loader", state="D", wchan="nfs4_wait")
    kept = _kept(
        _one_missing(
            facts=make.process("S", wchan="pipe_read", children=(child,)),
            gpu=wire.GpuFacts(index=3, utilisation=0.0, power_w=90.0),
        )
    )

    facts = next(one for one in kept.ranks if one.rank == 1)
    assert facts.process is not None
    assert facts.gpu is not None
    assert (facts.process.wchan, facts.process.children[0].wchan) == ("pipe_read", "nfs4_wait")
    assert (facts.gpu.index, facts.gpu.power_w) == (3, 90.0)


def test_a_rank_of_which_nothing_was_heard_is_kept_as_such() -> None:
    views = [make.rank(r, make.at("world", 5, 6)) for r in range(3)]
    snapshot = make.snapshot([*views, make.unseen(3)], [make.world(0, 1, 2, 3)], world_size=4)

    kept = _kept(snapshot)

    facts = {one.rank: one for one in kept.ranks}
    assert 3 not in facts or facts[3].process is None
    lane = next(lane for lane in kept.lanes if lane.ranks == "3")
    assert (lane.calls, lane.entered) == ((), None)


def test_signs_of_nodes_are_told_by_node() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6), node="node-a"),
        make.rank(
            1,
            make.at("world", 5, 6),
            node="node-b",
            gpu=wire.GpuFacts(index=1, xid=(79,), throttle=("hw_thermal_slowdown",)),
        ),
        make.rank(2, make.at("world", 5, 6), node="node-c", link=Link.LATE, age_s=7.0),
    ]

    kept = _kept(make.snapshot(views, [make.world(0, 1, 2)]))

    assert [(item.node, item.ranks, item.signs) for item in kept.nodes] == [
        (
            "node-b",
            "1",
            (
                "GPU 1 raised Xid 79: it has fallen off the bus",
                "GPU 1 holds its clocks down: hw_thermal_slowdown",
            ),
        ),
        ("node-c", "2", ("its agent is late",)),
    ]
    assert kept.nodes_total == 3
