"""From answers of NCCL RAS on the board to a state: a hang is found, a busy job is left alone."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.server.board import beats

from hangwatch_agent import wire
from hangwatch_agent.wire import RasMember, RasState
from hangwatch_server import detect
from hangwatch_server.detect import Decision, Memory
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Finding, Kind, State

EVERY_S = 10
Counts = Callable[[int], tuple[int, int, int, int]]


def answer(counts: tuple[int, ...], number: int) -> wire.RasReport:
    members = tuple(
        RasMember(rank, 0, 1000 + rank, rank, RasState.RUNNING, (count,))
        for rank, count in enumerate(counts)
    )
    item = wire.RasCommunicator(hash="ae94", size=4, ops=("all_reduce",), members=members)
    return wire.RasReport(
        launch=beats.KEY, number=number, age_s=0.0, hosts=("10.0.0.1",), communicators=(item,)
    )


def watched(
    counts: Counts, until_s: int, *, silent_from_s: int = 10**6, board_lost_s: int = -1
) -> list[tuple[int, Finding, Decision]]:
    """A job of four bare ranks, looked at each second; RAS answers every ten."""
    board, memory = beats.board_with("a"), Memory()
    seen: list[tuple[int, Finding, Decision]] = []
    for now_s in range(until_s):
        if now_s == board_lost_s:
            board = beats.board_with("a", now_s=float(now_s))  # the server starts anew
            memory = Memory()
        is_answered = now_s % EVERY_S == 0 and now_s < silent_from_s
        told = (answer(counts(now_s), now_s + 1),) if is_answered else ()
        ranks = tuple(map(beats.rank, range(4)))
        launches = (wire.Launch(key=beats.KEY, name="gpt"),)
        beat = wire.Heartbeat(number=now_s + 1, launches=launches, ranks=ranks, ras=told)
        board.apply("a", beat, float(now_s))
        snapshot = board.snapshot(beats.JOB, float(now_s))
        assert snapshot is not None
        finding = diagnose(snapshot)[0]
        memory, decision = detect.step(memory, snapshot, finding)
        seen.append((now_s, finding, decision))
    return seen


def stuck(now_s: int) -> tuple[int, int, int, int]:
    at = min(now_s, 40) * 7
    return at, at, at, at if now_s < 40 else at - 1


def test_rank_that_stays_behind_is_suspected_within_three_answers() -> None:
    seen = watched(stuck, 80)

    alarms = [(now_s, finding) for now_s, finding, one in seen if one.state is State.SUSPECTED]
    now_s, finding = alarms[0]
    assert now_s <= 40 + 3 * EVERY_S
    assert (finding.kind, finding.culprit_ranks) == (Kind.MISSING_RANKS, "3")


def test_ranks_that_run_ahead_of_each_other_and_go_on_are_left_alone() -> None:
    def busy(now_s: int) -> tuple[int, int, int, int]:
        return now_s * 7, now_s * 7 - 1, now_s * 7, now_s * 7 - 3

    states = {decision.state for _, _, decision in watched(busy, 200)}

    assert not states & {State.SUSPECTED, State.HUNG, State.SLOW}


def test_answers_that_stop_do_not_end_a_standstill_at_once() -> None:
    seen = watched(stuck, 120, silent_from_s=70)

    assert all(finding.kind is Kind.MISSING_RANKS for now_s, finding, _ in seen if now_s > 75)


def test_server_that_starts_anew_finds_the_same_culprit_again() -> None:
    seen = watched(stuck, 120, board_lost_s=85)

    assert all(finding.culprit_ranks == "" for now_s, finding, _ in seen if 85 <= now_s < 100)
    assert seen[-1][1].culprit_ranks == "3"
