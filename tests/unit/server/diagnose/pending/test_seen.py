"""Jobs without any probe: what stacks and the kernel's counts alone tell of their ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Condition, Finding, Kind, Link, RankView

ALL_REDUCE = "train.py:61 in step"


def inside(
    rank: int,
    *,
    still_s: float | None = 12.0,
    op: str = "all_reduce",
    where: str = ALL_REDUCE,
    activity: Activity = Activity.COLLECTIVE,
    captures: int = 1,
    age_s: float = 2.0,
    **facts: object,
) -> RankView:
    stack = make.stack(
        activity,
        where,
        op=op,
        age_s=age_s,
        same_leaf_captures=captures,
        same_leaf_s=10.0 if captures > 1 else 0.0,
        **facts,
    )
    return bare(rank, stack=stack, facts=make.process(main_still_s=still_s))


def outside(
    rank: int,
    *,
    still_s: float | None = 14.0,
    age_s: float = 2.0,
    activity: Activity = Activity.USER_CODE,
    where: str = "train.py:88 in read_batch",
    **facts: object,
) -> RankView:
    stack = make.stack(activity, where, age_s=age_s, **facts)
    return bare(rank, stack=stack, facts=make.process(main_still_s=still_s))


def bare(rank: int, **beat: object) -> RankView:
    return make.rank(
        rank, depth=wire.Depth.BARE, is_rank_certain=False, is_initialised=False, **beat
    )  # type: ignore[arg-type]


def first(*views: RankView, world_size: int = 0) -> Finding:
    return diagnose(make.snapshot(views, (), world_size=world_size))[0]


def test_rank_outside_while_the_others_stand_inside_is_missing() -> None:
    found = first(inside(0), inside(1), outside(2), inside(3))

    assert (found.kind, found.culprit_ranks, found.waiting) == (Kind.MISSING_RANKS, "2", "0-1,3")
    assert found.culprits[0].condition is Condition.IN_USER_CODE
    assert found.summary == (
        "Rank 2 (node-a, pid 802) is not inside all_reduce, and the others are; 3 ranks have "
        "waited 12 s. It is in its own code: train.py:88 in read_batch."
    )


def test_evidence_says_that_it_rests_on_stacks_alone() -> None:
    found = first(inside(0), inside(1), outside(2))

    assert "all_reduce at train.py:61 in step (0-1)" in found.evidence[0].text
    assert "from stacks alone" in found.evidence[0].text


def test_confidence_is_lower_than_with_a_probe() -> None:
    found = first(inside(0), inside(1), outside(2))

    assert 0.5 <= found.confidence <= 0.8


def test_wait_is_as_long_as_the_newest_comer_has_stood_still() -> None:
    assert first(inside(0, still_s=30), inside(1, still_s=5), outside(2)).stalled_s == (
        pytest.approx(5.2)
    )


def test_rank_that_ran_since_its_stack_was_taken_may_have_left_its_call() -> None:
    found = first(inside(0), inside(1, still_s=0.5, age_s=9.0), outside(2))

    assert found.waiting == "0"


def test_nobody_waits_while_everybody_runs() -> None:
    busy = [inside(rank, still_s=0.0, age_s=5.0) for rank in range(3)]

    assert first(*busy, outside(3, still_s=0.0)).kind is Kind.NONE


def test_spinning_wait_counts_once_it_was_seen_several_times() -> None:
    spinning = [inside(rank, still_s=0.0, captures=3) for rank in range(3)]

    found = first(*spinning, outside(3))

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "3")
    assert found.stalled_s == pytest.approx(12.0)


def test_where_the_kernel_counts_nothing_equal_looks_count() -> None:
    found = first(*(inside(rank, still_s=None, captures=2) for rank in range(2)), outside(2))

    assert found.culprit_ranks == "2"


def test_all_inside_one_call_blames_nobody() -> None:
    found = first(*(inside(rank) for rank in range(4)))

    assert (found.kind, found.culprits, found.waiting) == (Kind.STALLED_COLLECTIVE, (), "0-3")


def test_all_inside_at_different_places_blames_nobody_and_says_where_each_is() -> None:
    found = first(
        inside(0), inside(1), inside(2, op="barrier", where="train.py:70 in finish"), inside(3)
    )

    assert (found.kind, found.culprits) == (Kind.STALLED_COLLECTIVE, ())
    assert "barrier at train.py:70 in finish (2)" in found.summary
    assert "do not tell who is to blame" in found.summary


def test_dead_rank_is_named_at_once_while_others_wait() -> None:
    gone = bare(2, facts=make.process("gone", exit_signal=9))

    found = first(inside(0), inside(1), gone)

    assert (found.culprit_ranks, found.is_hard) == ("2", True)
    assert found.culprits[0].condition is Condition.KILLED


def test_stopped_rank_is_named_whatever_its_stack_shows() -> None:
    stopped = replace(inside(2), beat=bare(2, facts=make.process("T")).beat)

    found = first(inside(0), inside(1), stopped)

    assert found.culprits[0].condition is Condition.STOPPED


def test_frozen_rank_outside_goes_before_one_that_moves() -> None:
    found = first(inside(0), inside(1), outside(2), outside(3, still_s=0.0))

    assert found.culprit_ranks == "2"


def test_only_rank_outside_is_named_even_if_it_moves() -> None:
    assert first(inside(0), inside(1), outside(2, still_s=0.0)).culprit_ranks == "2"


def test_look_from_before_the_wait_does_not_place_a_rank_outside() -> None:
    found = first(
        inside(0, still_s=3.0), inside(1, still_s=3.0), outside(2, still_s=0.0, age_s=25.0)
    )

    assert found.culprit_ranks == "" or found.confidence < 0.5


def test_absent_rank_of_init_is_an_incomplete_rendezvous() -> None:
    waiting = [
        inside(rank, op="init_process_group", activity=Activity.RENDEZVOUS) for rank in (0, 1)
    ]

    found = first(*waiting, outside(2, activity=Activity.MODEL_LOADING))

    assert (found.kind, found.culprit_ranks) == (Kind.INCOMPLETE_RENDEZVOUS, "2")
    assert found.op == "init_process_group"


def test_wait_and_lock_look_alike_but_a_lone_one_is_the_lock() -> None:
    opaque = {"is_opaque": True, "where": "train.py:75 in flush"}

    found = first(inside(0), inside(1), outside(2, **opaque))  # type: ignore[arg-type]

    assert found.culprit_ranks == "2"


def test_several_ranks_in_the_same_wait_of_an_asynchronous_call_are_waiting() -> None:
    opaque = {"is_opaque": True, "where": "train.py:62 in step"}
    waiting = [outside(rank, still_s=12.0, **opaque) for rank in range(2)]  # type: ignore[arg-type]

    found = first(*waiting, outside(2))

    assert (found.culprit_ranks, found.waiting) == ("2", "0-1")


def test_rank_that_sleeps_with_the_interpreter_lock_holds_it() -> None:
    found = first(inside(0), inside(1), outside(2, gil_holder="its main thread"))

    assert found.culprits[0].condition is Condition.GIL_HELD
    assert found.culprits[0].detail.startswith("its main thread keeps the interpreter lock")


def test_one_opaque_wait_alone_accuses_nobody() -> None:
    opaque = {"is_opaque": True, "where": "train.py:62 in step"}

    found = first(outside(0, **opaque), outside(1, still_s=0.0), outside(2, still_s=0.0))  # type: ignore[arg-type]

    assert found.kind is Kind.NONE


def test_rank_that_waits_for_its_gpu_is_no_culprit() -> None:
    found = first(inside(0), inside(1, activity=Activity.GPU, op="", still_s=12.0), outside(2))

    assert found.culprit_ranks == "2"


def test_unmatched_receive_is_told_by_its_call() -> None:
    found = first(inside(0, op="recv"), outside(1))

    assert (found.kind, found.culprit_ranks) == (Kind.UNMATCHED_P2P, "1")


def test_rank_of_a_lost_node_is_no_certain_culprit() -> None:
    lost = replace(outside(2), link=Link.LOST)

    found = first(inside(0), inside(1), lost)

    assert found.confidence < 0.5


def test_any_probe_in_the_job_leaves_the_word_to_counters() -> None:
    probed = make.rank(0, make.at("world", 8, 9))

    found = diagnose(make.snapshot([probed, inside(1), outside(2)], [make.world(0, 1, 2)]))

    assert all("stacks alone" not in item.text for finding in found for item in finding.evidence)


def test_still_job_outside_of_collectives_makes_no_progress() -> None:
    found = first(outside(0), outside(1))

    assert found.kind is Kind.NO_PROGRESS


def test_signal_is_said_once() -> None:
    gone = bare(2, facts=make.process("gone", exit_signal=9, exit_reason="killed by SIGKILL"))

    assert first(inside(0), inside(1), gone).culprits[0].detail == "it was killed by SIGKILL"
