"""Which candidates are ranks, and which only inherited one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangwatch_agent import discover, table
from hangwatch_agent.discover import BareFinder, Candidate, select
from hangwatch_agent.process import Identity
from hangwatch_agent.procfs import Procfs, Stat


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


class OneJob(Procfs):
    """Every process is a Python with the same RANK, of the same user."""

    def environ(self, pid: int) -> dict[str, str]:
        return {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}

    def uids(self, pid: int) -> frozenset[int]:
        return frozenset({0})

    def arguments(self, pid: int) -> tuple[str, ...]:
        return ("python", "train.py")

    def executable(self, pid: int) -> str:
        return ""


def process(pid: int, stack_start: int) -> Stat:
    return Stat(pid, "python", "S", 1, 0, 1, pid, 0, stack_start)


def found(finder: BareFinder, *stats: Stat) -> set[int]:
    processes = table.Table()
    for stat in stats:
        table.add(processes, stat)
    return {candidate.identity.pid for candidate in finder.find(processes)}


def test_forked_child_that_outlives_its_rank_does_not_become_it() -> None:
    finder = BareFinder(OneJob(), Path("/r"), adopt=True)

    assert found(finder, process(10, 7000)) == {10}
    assert found(finder, process(11, 7000)) == set()


def test_process_started_after_a_rank_is_a_rank_of_its_own() -> None:
    finder = BareFinder(OneJob(), Path("/r"), adopt=True)

    assert found(finder, process(10, 7000)) == {10}
    assert found(finder, process(11, 8000)) == {11}


def test_old_process_that_becomes_another_program_is_looked_at_again() -> None:
    finder = BareFinder(OneJob(), Path("/r"), adopt=True)
    shell = Stat(10, "node_exporter", "S", 1, 0, 1, 10, 0, 7000)
    newest = process(5000, 9000)

    assert found(finder, shell, newest) == {5000}
    assert found(finder, process(10, 8000), newest) == {10, 5000}


def test_processes_whose_addresses_are_hidden_stay_candidates() -> None:
    finder = BareFinder(OneJob(), Path("/r"), adopt=True)

    assert found(finder, process(10, 0), process(11, 0)) == {10, 11}


@pytest.mark.parametrize(("rank", "world"), [(5, 2), (262_144, 0), (0, 262_145), (-1, 2)])
def test_rank_that_no_server_takes_is_none(rank: int, world: int) -> None:
    assert not discover._is_possible(rank, world)
