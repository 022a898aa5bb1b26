"""What is kept of an attempt that a restart has replaced."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest
from tests.unit.server.board import beats
from tests.unit.server.diagnose import builders as make

from hangwatch_server import diagnose
from hangwatch_server.model import Finding, Kind, RankView, State, Verdict
from hangwatch_server.watch import attempts, verdicts

NOW = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
WORLD = [make.world(0, 1, 2, 3)]


def last_word(
    views: list[RankView], state: State = State.HEALTHY, finding: Finding | None = None
) -> Verdict | None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0)]), 1.0)
    meta = board.job_meta(beats.JOB, 1.0)
    assert meta is not None
    before = dataclasses.replace(verdicts.first(meta, NOW), state=state, incident="old")
    seen = make.snapshot(views, WORLD)
    known = finding or Finding(kind=Kind.NONE)
    return attempts.last_word(meta, seen, known, before, 2, NOW)


def training(*dead: RankView) -> list[RankView]:
    gone = {view.rank for view in dead}
    return [*(make.rank(r, make.at("world", 5, 6)) for r in range(4) if r not in gone), *dead]


def dead(rank: int, **facts: object) -> RankView:
    return make.rank(rank, make.at("world", 5), facts=make.process("gone", **facts))


def test_crash_that_was_seen_is_told_with_who_died_and_that_it_was_started_again() -> None:
    views = training(dead(3, exit_code=1))
    finding = diagnose.diagnose(make.snapshot(views, WORLD))[0]

    last = last_word(views, finding=finding)

    assert last is not None
    assert last.summary == "Rank 3 exited with code 1; restarted as attempt 2."
    assert (last.state, last.attempt, last.culprit_ranks) == (State.FAILED, 1, "3")
    assert last.incident is None


def test_ranks_that_the_launcher_ended_are_not_told_as_the_cause() -> None:
    last = last_word(training(dead(0, exit_signal=15), dead(3, exit_code=1)))

    assert last is not None
    assert last.summary == "Rank 3 exited with code 1; restarted as attempt 2."


def test_attempt_that_nobody_saw_end_is_told_as_that_and_no_more() -> None:
    suspicion = diagnose.diagnose(make.snapshot(training(), WORLD))[0]

    last = last_word(training(), State.SUSPECTED, suspicion)

    assert last is not None
    assert last.summary == "Nobody saw attempt 1 end; restarted as attempt 2."
    assert (last.kind, last.culprits, last.waiting) == (Kind.NONE, (), "")


def test_attempt_that_finished_leaves_no_record() -> None:
    assert last_word(training(), State.FINISHED) is None


@pytest.mark.parametrize("is_initialised", [False, True])
def test_attempt_that_never_got_to_train_leaves_a_record_only_if_it_had_begun_to(
    is_initialised: bool,
) -> None:
    views = [make.rank(r, is_initialised=is_initialised) for r in range(4)]

    assert (last_word(views) is not None) is is_initialised
