"""Verdicts out of findings and decisions, the advice in them, and what an index stands for."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import msgspec
import pytest
from tests.unit.server.board import beats

from hangwatch_server.board import JobMeta
from hangwatch_server.detect import Decision
from hangwatch_server.model import (
    Cause,
    Condition,
    Coverage,
    Culprit,
    Finding,
    Kind,
    Limits,
    NodeHistory,
    Shift,
    Snapshot,
    State,
    Verdict,
)
from hangwatch_server.watch import advice, verdicts

NOW = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
LATER = datetime(2026, 11, 20, 18, 5, tzinfo=UTC)
LIMITS = Limits(suspect_after_s=10, confirm_after_s=15, why="floors")


def scene(wchan: str = "") -> tuple[JobMeta, Snapshot]:
    board = beats.board_with("a")
    one = beats.rank(2)
    process = msgspec.structs.replace(one.process, state="D", wchan=wchan)
    board.apply("a", beats.heartbeat([msgspec.structs.replace(one, process=process)]), 1.0)
    meta, snapshot = board.job_meta(beats.JOB, 1.0), board.snapshot(beats.JOB, 1.0)
    assert meta is not None
    assert snapshot is not None
    return meta, snapshot


def finding(
    condition: Condition = Condition.IN_USER_CODE, kind: Kind = Kind.MISSING_RANKS
) -> Finding:
    culprit = Culprit(rank=2, node="a", pid=1002, gpu=None, condition=condition, where="")
    return Finding(
        kind=kind,
        summary="Rank 2 never entered all_reduce #29.",
        culprits=(culprit,),
        culprit_ranks="2",
        coverage=Coverage(reporting=1, world_size=4, silent="0-1,3"),
    )


def decision(state: State) -> Decision:
    return Decision(state=state, stalled_s=12.34, limits=LIMITS)


def verdict_of(state: State, previous: Verdict | None = None, now: datetime = NOW) -> Verdict:
    meta, snapshot = scene()
    return verdicts.build(meta, snapshot, finding(), decision(state), previous, now)


def test_calm_state_shows_no_culprits() -> None:
    verdict = verdict_of(State.HEALTHY)

    assert verdict.kind is Kind.NONE
    assert verdict.culprits == ()
    assert verdict.stalled_s == 0.0


def test_state_keeps_its_beginning_and_index_while_it_lasts() -> None:
    first = dataclasses.replace(verdict_of(State.HUNG), index=7, incident="i1")

    second = verdict_of(State.HUNG, first, LATER)
    third = verdict_of(State.HEALTHY, second, LATER)

    assert (second.since, second.index, second.incident) == (NOW, 7, "i1")
    assert third.since == LATER


def test_passing_time_does_not_change_the_key_but_culprits_do() -> None:
    first = verdict_of(State.HUNG)
    older = dataclasses.replace(first, stalled_s=99.0, confidence=0.5, summary="other words")
    other = dataclasses.replace(first, culprit_ranks="3")

    assert verdicts.key(first) == verdicts.key(older)
    assert verdicts.key(first) != verdicts.key(other)


def test_job_that_nobody_reports_is_unknown_unless_it_was_over() -> None:
    hung, finished = verdict_of(State.HUNG), verdict_of(State.FINISHED)

    unseen = verdicts.unseen(hung, "nobody reports it")

    assert unseen.state is State.UNKNOWN
    assert unseen.coverage == Coverage(reporting=0, world_size=4, silent="0-3")
    assert verdicts.unseen(finished, "") is finished


@pytest.mark.parametrize(
    ("state", "kind", "condition", "wchan", "count", "expected"),
    [
        (State.HEALTHY, Kind.NONE, Condition.UNKNOWN, "", 0, ("none", ())),
        (State.SUSPECTED, Kind.MISSING_RANKS, Condition.NODE_LOST, "", 0, ("wait", ())),
        (State.SLOW, Kind.MISSING_RANKS, Condition.IN_USER_CODE, "", 0, ("investigate", ())),
        (State.HUNG, Kind.MISSING_RANKS, Condition.IN_DATALOADER, "", 0, ("restart", ())),
        (State.HUNG, Kind.MISMATCH, Condition.IN_COLLECTIVE, "", 0, ("investigate", ())),
        (
            State.HUNG,
            Kind.MISSING_RANKS,
            Condition.NODE_LOST,
            "",
            0,
            ("restart_excluding", ("a",)),
        ),
        (
            State.HUNG,
            Kind.MISSING_RANKS,
            Condition.UNINTERRUPTIBLE,
            "nvme_wait_ready",
            0,
            ("restart_excluding", ("a",)),
        ),
        (
            State.HUNG,
            Kind.MISSING_RANKS,
            Condition.UNINTERRUPTIBLE,
            "nfs4_wait_bit",
            0,
            ("restart", ()),
        ),
        (
            State.FAILED,
            Kind.MISSING_RANKS,
            Condition.KILLED,
            "",
            3,
            ("restart_excluding", ("a",)),
        ),
    ],
)
def test_advice_blames_a_node_only_on_evidence_against_the_node(
    state: State,
    kind: Kind,
    condition: Condition,
    wchan: str,
    count: int,
    expected: tuple[str, tuple[str, ...]],
) -> None:
    _, snapshot = scene(wchan)

    history = {"a": NodeHistory(incidents=count, jobs=count)}

    action = advice.action(state, finding(condition, kind), snapshot, history, evidence_stored=True)

    assert (action.advice, action.exclude_nodes) == expected


@pytest.mark.parametrize(
    ("jobs", "kind"), [(1, Kind.MISSING_RANKS), (3, Kind.MISMATCH), (3, Kind.DEADLOCK)]
)
def test_node_is_not_to_blame_for_one_jobs_hangs_nor_for_wrong_programs(
    jobs: int, kind: Kind
) -> None:
    _, snapshot = scene()
    history = {"a": NodeHistory(incidents=9, jobs=jobs)}
    found = finding(Condition.IN_USER_CODE, kind)

    action = advice.action(State.HUNG, found, snapshot, history, evidence_stored=True)

    assert action.exclude_nodes == ()


def test_verdict_names_the_culprits_of_causes_that_stand_beside_the_main_one() -> None:
    meta, snapshot = scene()
    beside = dataclasses.replace(finding().culprits[0], rank=5)
    cause = Cause(kind=Kind.MISSING_RANKS, summary="Rank 5 too.", culprit_ranks="5", waiting="3")
    double = dataclasses.replace(finding(), besides=(beside,), causes=(cause,), waiting="0-1,3,5")

    made = verdicts.build(meta, snapshot, double, decision(State.HUNG), None, NOW)

    assert [culprit.rank for culprit in made.culprits] == [2, 5]
    assert (made.culprit_ranks, made.waiting) == ("2,5", "0-1,3")


def test_reason_of_the_state_stands_beside_what_the_finding_says() -> None:
    meta, snapshot = scene()
    slow = dataclasses.replace(decision(State.SLOW), reason="the culprit works")

    shown = verdicts.build(meta, snapshot, finding(), slow, None, NOW)

    assert [item.text for item in shown.evidence] == ["Slow: the culprit works."]


def test_a_restart_that_ended_alike_before_is_not_advised_again() -> None:
    _, snapshot = scene()

    told = [
        advice.action(
            State.HUNG,
            finding(condition),
            snapshot,
            {},
            evidence_stored=True,
            is_repeated=is_repeated,
        ).advice
        for condition, is_repeated in (
            (Condition.IN_USER_CODE, False),
            (Condition.IN_USER_CODE, True),
            (Condition.NODE_LOST, True),
        )
    ]

    assert told == ["restart", "investigate", "restart_excluding"]


def test_separate_causes_and_a_skipped_call_are_in_the_verdict() -> None:
    meta, snapshot = scene()
    beside = dataclasses.replace(finding().culprits[0], rank=3)
    skipped = Shift(rank=2, calls=1, op="all_reduce", ago=4)
    cause = Cause(
        kind=Kind.MISSING_RANKS,
        summary="Rank 3 never entered barrier #4.",
        culprit_ranks="3",
        waiting="4",
        group=None,
        seq=4,
        op="barrier",
    )
    found = dataclasses.replace(finding(), besides=(beside,), causes=(cause,), shift=skipped)

    verdict = verdicts.build(meta, snapshot, found, decision(State.HUNG), None, NOW)

    assert verdict.causes == (cause,)
    assert [one.rank for one in verdict.culprits] == [2, 3]
    assert verdict.shift == skipped
