"""Ranks that never entered a collective: who is named, how surely, and what they do."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose, path
from hangwatch_server.model import Activity, Condition, Finding, Kind, Link, RankView, Snapshot


def one_missing(culprit: object, *, size: int = 4) -> Snapshot:
    """Rank 1 is `culprit`; the others wait in all_reduce #6 of the default group."""
    views = [make.rank(r, make.at("world", 5, 6)) for r in range(size) if r != 1]
    return make.snapshot([*views, culprit], [make.world(*range(size))])  # type: ignore[list-item]


def test_rank_that_never_entered_is_named_and_the_others_wait() -> None:
    snapshot = one_missing(make.rank(1, make.at("world", 5), node="node-b"))

    found = diagnose(snapshot)

    assert len(found) == 1
    assert found[0].kind is Kind.MISSING_RANKS
    assert (found[0].culprit_ranks, found[0].waiting) == ("1", "0,2-3")
    assert (found[0].seq, found[0].op) == (6, "all_reduce")
    assert found[0].group is not None
    assert found[0].group.name == "default_pg"
    assert not found[0].is_hard
    assert found[0].summary.startswith(
        "Rank 1 (node-b, pid 801) never entered all_reduce #6 of the default group; "
        "3 ranks have waited 12 s."
    )


def test_culprit_without_stack_has_an_unknown_condition() -> None:
    found = diagnose(one_missing(make.rank(1, make.at("world", 5))))[0]

    assert found.culprits[0].condition is Condition.UNKNOWN


@pytest.mark.parametrize(
    ("activity", "condition"),
    [
        (Activity.DATALOADER, Condition.IN_DATALOADER),
        (Activity.CHECKPOINT, Condition.IN_CHECKPOINT),
        (Activity.COMPILE, Condition.IN_COMPILE),
        (Activity.LOCK, Condition.IN_LOCK),
        (Activity.USER_CODE, Condition.IN_USER_CODE),
        (Activity.SHUTDOWN, Condition.FINISHED),
    ],
)
def test_condition_follows_the_stack(activity: Activity, condition: Condition) -> None:
    culprit = make.rank(1, make.at("world", 5), stack=make.stack(activity))

    found = diagnose(one_missing(culprit))[0]

    assert found.culprits[0].condition is condition
    assert found.culprits[0].where == "train.py:88 in step"


def test_stack_seen_frozen_three_times_raises_confidence() -> None:
    once = make.stack(Activity.USER_CODE)
    thrice = make.stack(Activity.USER_CODE, same_leaf_captures=3, same_leaf_s=10.0)

    first = diagnose(one_missing(make.rank(1, make.at("world", 5), stack=once)))[0]
    third = diagnose(one_missing(make.rank(1, make.at("world", 5), stack=thrice)))[0]
    none = diagnose(one_missing(make.rank(1, make.at("world", 5))))[0]

    assert none.confidence < first.confidence < third.confidence
    assert third.confidence >= 0.94


def test_stack_older_than_the_last_movement_says_nothing() -> None:
    old = make.stack(Activity.DATALOADER, age_s=40.0)
    culprit = make.rank(1, make.at("world", 5, stall_s=13.0), stack=old)

    found = diagnose(one_missing(culprit))[0]

    assert found.culprits[0].condition is Condition.UNKNOWN


def test_stuck_loader_worker_is_told_with_its_kernel_function() -> None:
    worker = wire.ChildFacts(pid=831, name="pt_data_worker", role="loader", state="D", wchan="nfs4")
    culprit = make.rank(
        1,
        make.at("world", 5),
        facts=make.process(children=(worker,)),
        stack=make.stack(Activity.DATALOADER),
    )

    found = diagnose(one_missing(culprit))[0]

    assert found.culprits[0].detail == "worker 831 is in D state in nfs4 (waits for the NFS server)"
    assert any("D state" in hint for hint in found.hints)


@pytest.mark.parametrize(
    ("facts", "condition"),
    [
        ({"state": "T"}, Condition.STOPPED),
        ({"state": "D", "wchan": "nfs4_wait"}, Condition.UNINTERRUPTIBLE),
        ({"state": "S", "is_gil_held": True}, Condition.GIL_HELD),
        ({"state": "S", "is_unresponsive": True}, Condition.UNRESPONSIVE),
    ],
)
def test_process_that_cannot_report_is_named_without_a_dump(
    facts: dict[str, object], condition: Condition
) -> None:
    culprit = make.rank(1, make.counter_only("world", 5), facts=make.process(**facts))  # type: ignore[arg-type]

    found = diagnose(one_missing(culprit))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "1")
    assert found.culprits[0].condition is condition
    assert found.confidence >= 0.85


@pytest.mark.parametrize(
    ("facts", "condition", "text"),
    [
        ({"exit_signal": 9}, Condition.KILLED, "was killed by SIGKILL"),
        ({"exit_code": 1}, Condition.EXITED, "exited with code 1"),
        ({"exit_code": 0}, Condition.EXITED, "exited with code 0"),
        ({"exit_reason": "oom_kill"}, Condition.KILLED, "was killed (oom_kill)"),
        ({}, Condition.EXITED, "is gone, cause unknown"),
    ],
)
def test_process_gone_while_others_wait_is_hard_evidence(
    facts: dict[str, object], condition: Condition, text: str
) -> None:
    culprit = make.rank(1, make.counter_only("world", 5), facts=make.process("gone", **facts))

    found = diagnose(one_missing(culprit))[0]

    assert found.is_hard
    assert found.culprits[0].condition is condition
    assert f"It {text}." in found.summary
    assert found.confidence >= 0.95


def test_death_is_not_hard_before_the_others_have_stood_still() -> None:
    views = [make.rank(0, make.at("world", 5, 6, stall_s=1.1))]
    dead = make.rank(1, make.at("world", 5, stall_s=1.5), facts=make.process("gone"))

    found = diagnose(make.snapshot([*views, dead], [make.world(0, 1)]))[0]

    assert found.culprit_ranks == "1"
    assert not found.is_hard


def test_lost_node_is_named_with_low_confidence_when_nobody_else_is_missing() -> None:
    culprit = make.rank(1, make.at("world", 5), link=Link.LOST, age_s=30.0)

    found = diagnose(one_missing(culprit))[0]

    assert found.culprits[0].condition is Condition.NODE_LOST
    assert found.confidence <= 0.5
    assert not found.is_hard
    assert found.coverage.silent == "1"


def test_rank_known_by_its_raw_counter_alone_is_no_confident_culprit() -> None:
    culprit = make.rank(1, make.counter_only("world", 7))

    found = diagnose(one_missing(culprit))[0]

    assert found.culprit_ranks == "1"
    assert found.confidence < 0.5
    assert any("raw counter" in item.text for item in found.evidence)


def test_silent_rank_becomes_a_note_beside_a_proven_culprit() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.at("world", 5)),
        make.rank(2, make.at("world", 4), link=Link.LOST, age_s=30.0),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))

    assert len(found) == 1
    assert found[0].culprit_ranks == "1"
    assert any("Rank 2 is silent" in item.text for item in found[0].evidence)


def test_silent_rank_whose_group_goes_on_is_not_reported() -> None:
    views = [
        make.rank(0, make.at("world", 5, stall_s=0.1)),
        make.rank(1, make.at("world", 2), link=Link.LOST, age_s=60.0),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))

    assert [item.kind for item in found] == [Kind.NONE]


def test_completion_at_a_peer_proves_that_a_silent_rank_arrived() -> None:
    """#6 finished on rank 0, so rank 2 entered it although its own data are older."""
    views = [
        make.rank(0, make.at("world", 6)),
        make.rank(1, make.at("world", 5, 6)),
        make.rank(2, make.at("world", 3), link=Link.LOST, age_s=30.0),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]

    assert found.kind is Kind.STALLED_COLLECTIVE
    assert found.culprits == ()


def test_front_in_an_older_dump_than_a_peers_completion_is_over() -> None:
    old = make.at("world", 5, 6)
    views = [
        make.rank(0, old, age_s=3.0),
        make.rank(1, make.at("world", 6, stall_s=2.5)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.kind is Kind.NONE


def test_two_faults_in_one_job_are_both_named() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.at("world", 5), stack=make.stack(Activity.DATALOADER)),
        make.rank(2, make.at("world", 5, 6)),
        make.rank(3, make.counter_only("world", 5), facts=make.process("gone", exit_signal=9)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))

    assert len(found) == 1
    assert found[0].culprit_ranks == "1,3"
    assert [c.condition for c in found[0].culprits] == [Condition.IN_DATALOADER, Condition.KILLED]


def test_path_leads_across_groups_to_the_culprit() -> None:
    """Rank 0 waits for rank 1 in tp-0, which waits for rank 3 in dp-1."""
    views = [
        make.rank(0, make.at("tp-0", 8, 9), make.at("dp-0", 3)),
        make.rank(1, make.at("tp-0", 8), make.at("dp-1", 3, 4)),
        make.rank(2, make.at("tp-1", 8, 9), make.at("dp-0", 3)),
        make.rank(3, make.at("tp-1", 8), make.at("dp-1", 3), stack=make.stack(Activity.LOCK)),
    ]
    groups = [
        make.group("tp-0", (0, 1)),
        make.group("tp-1", (2, 3)),
        make.group("dp-0", (0, 2)),
        make.group("dp-1", (1, 3)),
    ]
    snapshot = make.snapshot(views, groups)

    steps = path(snapshot, 0)

    assert [(s.rank, s.waits_in, s.for_) for s in steps[:2]] == [
        (0, "tp-0 all_reduce #9", (1,)),
        (1, "dp-1 all_reduce #4", (3,)),
    ]
    assert steps[2].rank == 3
    assert steps[2].waits_in == "waits for a lock or queue: train.py:88 in step"
    assert path(snapshot, 3) == ()
    found = diagnose(snapshot)[0]
    assert (found.culprit_ranks, found.waiting) == ("3", "0-2")


def user_path(*lines: tuple[str, int]) -> tuple[wire.Frame, ...]:
    return tuple(wire.Frame(name=name, file="train.py", line=line) for name, line in lines)


def in_ddp_while_the_other_is_at(line: int) -> Finding:
    """Rank 1 waits in DDP's backward, called from main's line 40; rank 0 idles elsewhere."""
    elsewhere = make.stack(
        Activity.USER_CODE, "train.py:36 in stay", user_path=user_path(("main", line), ("stay", 36))
    )
    waiting = make.stack(
        Activity.COLLECTIVE, is_in_backward=True, user_path=user_path(("main", 40), ("train", 22))
    )
    asleep = make.process(wchan="hrtimer_nanosleep")
    views = [
        make.rank(0, make.at("world", 10), facts=asleep, stack=elsewhere),
        make.rank(1, make.at("world", 10, 11), stack=waiting),
    ]
    return diagnose(make.snapshot(views, [make.world(0, 1)]))[0]


def test_rank_past_the_loop_that_others_wait_in_has_left_training() -> None:
    found = in_ddp_while_the_other_is_at(line=41)

    assert (found.kind, found.culprit_ranks, found.seq) == (Kind.MISSING_RANKS, "0", 11)
    assert found.culprits[0].condition is Condition.FINISHED
    assert "a later part of the same loop looks the same" in found.culprits[0].detail
    assert any("uneven" in hint for hint in found.hints)
    assert not any("find_unused_parameters" in hint for hint in found.hints)


def test_rank_before_the_call_that_others_wait_in_has_not_left_training() -> None:
    found = in_ddp_while_the_other_is_at(line=39)

    assert found.culprit_ranks == "0"
    assert found.culprits[0].condition is Condition.IN_USER_CODE
    assert any("find_unused_parameters" in hint for hint in found.hints)


def test_rank_that_opens_a_file_has_not_left_training() -> None:
    waiting = make.stack(Activity.COLLECTIVE, is_in_backward=True)
    views = [
        make.rank(
            0,
            make.at("world", 10),
            facts=make.process(wchan="wait_for_partner"),
            stack=make.stack(Activity.USER_CODE),
        ),
        make.rank(1, make.at("world", 10, 11), stack=waiting),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.culprits[0].condition is Condition.IN_USER_CODE


def test_skipped_object_collective_is_recognised_by_the_sizes_it_gathers() -> None:
    front = make.entry(11, "all_gather", size=1, dtype="Long")
    views = [make.rank(0, make.at("world", 10, front)), make.rank(1, make.at("world", 10))]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert any("all_gather_object" in hint for hint in found.hints)


def test_missing_root_is_blamed_for_a_broadcast_before_other_absent_ranks() -> None:
    call = wire.Call(op="broadcast", gid="world", age_s=12.0, root=2)
    views = [
        make.rank(0, make.at("world", 5, 6, op="broadcast"), calls=(call,)),
        make.rank(1, make.at("world", 5)),
        make.rank(2, make.at("world", 5)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]

    assert found.culprit_ranks == "2"


def test_counters_of_a_probe_that_fell_silent_prove_no_absence() -> None:
    culprit = make.rank(1, make.at("world", 5), beat_age_s=30.0)

    found = diagnose(one_missing(culprit))[0]

    assert found.culprit_ranks == "1"
    assert found.confidence < 0.5


def test_rank_that_died_while_it_waited_is_no_culprit_beside_one_that_never_came() -> None:
    """As when a hung job is torn down: rank 2 was inside, then it was killed."""
    views = [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.at("world", 5)),
        make.rank(2, make.at("world", 5, 6), facts=make.process("gone")),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]

    assert (found.culprit_ranks, found.waiting) == ("1", "0")


def test_dead_job_has_nobody_who_waits() -> None:
    dead = make.process("gone")
    views = [
        make.rank(0, make.at("world", 5, 6), facts=dead),
        make.rank(1, make.at("world", 5), facts=dead),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))

    assert [(item.kind, item.culprits) for item in found] == [(Kind.NONE, ())]


def test_two_faults_far_apart_are_two_findings_that_know_of_each_other() -> None:
    groups = [make.group("tp-0", (0, 1)), make.group("tp-1", (2, 3))]
    views = [
        make.rank(0, make.at("tp-0", 5, 6)),
        make.rank(1, make.at("tp-0", 5), stack=make.stack(Activity.DATALOADER)),
        make.rank(2, make.at("tp-1", 5, 6)),
        make.rank(3, make.at("tp-1", 5), stack=make.stack(Activity.CHECKPOINT)),
    ]

    found = diagnose(make.snapshot(views, groups))

    assert [(one.culprit_ranks, [c.rank for c in one.besides]) for one in found] == [
        ("1", [3]),
        ("3", [1]),
    ]
    assert any(item.text.startswith("Apart from that: Rank 3") for item in found[0].evidence)


@pytest.mark.parametrize(
    "left",
    [
        make.rank(1, is_destroyed=True),
        make.rank(1, make.at("world", 30), facts=make.process("gone", exit_code=0)),
    ],
)
def test_rank_that_may_have_done_its_part_of_a_gather_and_left_is_not_named(
    left: RankView,
) -> None:
    waiting = [make.rank(number, make.at("world", 30, 31, op="gather")) for number in (0, 2)]
    absent = make.rank(3, make.at("world", 30, op="gather"))

    found = diagnose(make.snapshot([*waiting, left, absent], [make.world(0, 1, 2, 3)]))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "3")
    assert not found.is_hard
