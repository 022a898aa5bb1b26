"""Children are found when they start, and judged anew when they become another program."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hangwatch_agent import children
from hangwatch_agent.offspring import Offspring
from hangwatch_agent.procfs import TICKS_PER_S, Procfs, Stat

RANK = 10
TRAINING = ("python", "train.py")


class Machine(Procfs):
    """Processes with the thread that started each."""

    def __init__(self) -> None:
        super().__init__()
        self.stats: dict[int, Stat] = {}
        self.by_thread: dict[int, list[int]] = {}
        self.told: dict[int, tuple[str, ...]] = {}
        self.bytes: dict[int, int] = {}

    def add(
        self, pid: int, parent: int = RANK, *arguments: str, thread: int = 0, name: str = "sh"
    ) -> None:
        self.stats[pid] = Stat(pid, name, "S", parent, 0, 1, pid, 0, stack_start=pid)
        self.by_thread.setdefault(thread or parent, []).append(pid)
        self.told[pid] = arguments or ("sh",)

    def ran(self, pid: int, ticks: int, *, waited: int = 0) -> None:
        self.stats[pid] = replace(self.stats[pid], cpu_ticks=ticks, waited_ticks=waited)

    def stat(self, pid: int) -> Stat | None:
        return self.stats.get(pid)

    def children(self, pid: int, *, of_all_threads: bool) -> list[int]:
        of_others = self.by_thread.get(-pid, []) if of_all_threads else []
        return self.by_thread.get(pid, []) + of_others

    def arguments(self, pid: int) -> tuple[str, ...]:
        return self.told[pid]

    def executable(self, pid: int) -> str:
        return ""

    def wchan(self, pid: int) -> str:
        return ""

    def io_bytes(self, pid: int) -> int | None:
        return self.bytes.get(pid)


def of(machine: Machine) -> Offspring:
    return Offspring(machine, RANK, TRAINING)


def pids(offspring: Offspring, now_s: float, *, is_waiting: bool = True) -> list[int]:
    return [fact.pid for fact in offspring.observe(now_s, is_waiting=is_waiting)]


def test_child_is_seen_without_a_scan_and_so_is_what_it_starts() -> None:
    machine = Machine()
    offspring = of(machine)
    machine.add(20)
    machine.add(21, 20)

    assert pids(offspring, 1.0) == [20, 21]
    del machine.stats[21]
    assert pids(offspring, 2.0) == [20]


def test_child_of_another_thread_is_seen_while_the_main_thread_waits() -> None:
    machine = Machine()
    machine.add(20, thread=-RANK)

    assert pids(of(machine), 1.0, is_waiting=False) == []
    assert pids(of(machine), 1.0) == [20]


def test_scan_keeps_the_history_of_a_child_that_was_seen_before() -> None:
    machine = Machine()
    offspring = of(machine)
    machine.add(20)
    offspring.observe(1.0, is_waiting=True)
    machine.ran(20, TICKS_PER_S)

    offspring.adopt([machine.stats[20]])

    assert offspring.observe(2.0, is_waiting=True)[0].cpu_share == pytest.approx(1.0)


def test_fork_that_becomes_another_program_loses_the_role_of_a_worker() -> None:
    machine = Machine()
    offspring = of(machine)
    machine.add(20, RANK, *TRAINING, name="python")
    before = offspring.observe(1.0, is_waiting=True)[0].role

    machine.told[20] = ("sleep", "60")
    machine.stats[20] = replace(machine.stats[20], name="sleep", stack_start=999)

    assert (before, offspring.observe(2.0, is_waiting=True)[0].role) == ("loader", "other")


def test_shell_is_credited_with_the_programs_that_it_has_waited_for() -> None:
    machine = Machine()
    offspring = of(machine)
    machine.add(20)
    offspring.observe(1.0, is_waiting=True)

    machine.ran(20, 0, waited=TICKS_PER_S // 2)

    assert offspring.observe(2.0, is_waiting=True)[0].cpu_share == pytest.approx(0.5)


def test_bytes_a_second_are_told_while_the_rank_waits() -> None:
    machine = Machine()
    offspring = of(machine)
    machine.add(20)
    machine.bytes[20] = 1000
    first = offspring.observe(1.0, is_waiting=True)[0].io_rate
    machine.bytes[20] = 5000

    assert first is None
    assert offspring.observe(3.0, is_waiting=True)[0].io_rate == pytest.approx(2000.0)
    assert offspring.observe(4.0, is_waiting=False)[0].io_rate is None


def test_runaway_fork_is_followed_up_to_the_limit_only() -> None:
    machine = Machine()
    for pid in range(100, 100 + 3 * children.MAX_CHILDREN):
        machine.add(pid)

    assert len(pids(of(machine), 1.0)) == children.MAX_CHILDREN


def test_children_of_a_rank_that_goes_on_are_looked_at_every_few_seconds() -> None:
    machine = Machine()
    offspring = of(machine)
    offspring.observe(1.0, is_waiting=False, is_moving=True)
    machine.add(20)

    seen = [
        bool(offspring.observe(1.0 + second, is_waiting=False, is_moving=True))
        for second in range(1, 6)
    ]

    assert seen == [False, False, False, False, True]


def test_children_are_looked_at_at_once_when_their_rank_stands_still() -> None:
    machine = Machine()
    offspring = of(machine)
    offspring.observe(1.0, is_waiting=True, is_moving=True)
    machine.add(20)

    assert offspring.observe(2.0, is_waiting=True, is_moving=True) == ()
    assert pids(offspring, 3.0) == [20]
