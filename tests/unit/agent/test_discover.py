"""Which candidates are ranks, and which only inherited one."""

from __future__ import annotations

from pathlib import Path

from hangwatch_agent.discover import Candidate, select
from hangwatch_agent.process import Identity


def candidate(
    pid: int,
    *ancestors: int,
    is_certain: bool = False,
    record: Path | None = None,
    rank: int = 0,
) -> Candidate:
    return Candidate(
        identity=Identity(pid, pid * 10, 0),
        rank=rank,
        world_size=2,
        local_rank=rank,
        is_certain=is_certain,
        environ={},
        arguments=(),
        ancestors=ancestors,
        record=record,
    )


def pids(*candidates: Candidate) -> set[int]:
    return {item.identity.pid for item in select(candidates)}


def test_worker_below_a_rank_is_no_rank() -> None:
    assert pids(candidate(10, 1), candidate(11, 10, 1), candidate(12, 11, 10, 1)) == {10}


def test_launcher_above_certain_ranks_is_no_rank() -> None:
    launcher = candidate(10, 1)
    ranks = [candidate(pid, 10, 1, is_certain=True, rank=pid) for pid in (11, 12)]

    assert pids(launcher, *ranks) == {11, 12}


def test_uncertain_sibling_below_a_launcher_stays_a_guess() -> None:
    launcher = candidate(10, 1)

    assert pids(launcher, candidate(11, 10, 1, is_certain=True), candidate(12, 10, 1)) == {11, 12}


def test_record_wins_over_the_bare_view_of_the_same_process() -> None:
    record = Path("/r/10.100.record")

    (chosen,) = select([candidate(10, 1), candidate(10, 1, record=record)])

    assert chosen.record == record


def test_process_with_a_reused_pid_is_another_candidate() -> None:
    old = candidate(10, 1, is_certain=True)
    new = Candidate(**{**vars(old), "identity": Identity(10, 999, 0)})

    assert len(select([old, new])) == 2
