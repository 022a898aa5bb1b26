"""What a scan reads again, and what it takes from the scan before."""

from __future__ import annotations

from hangwatch_agent.procfs import TICKS_PER_S, Procfs, Stat
from hangwatch_agent.table import SETTLED_S, TURNS, Scanner

OLD = 0
NOW = int(1000 * TICKS_PER_S)


class Machine(Procfs):
    """Processes by pid, and which of them were read."""

    def __init__(self, *stats: Stat) -> None:
        super().__init__()
        self.stats = {stat.pid: stat for stat in stats}
        self.read: list[int] = []

    def pids(self) -> list[int]:
        return list(self.stats)

    def stat(self, pid: int) -> Stat | None:
        self.read.append(pid)
        return self.stats.get(pid)


def process(pid: int, parent: int = 1, start: int = OLD, name: str = "sh") -> Stat:
    return Stat(pid, name, "S", parent, 0, 1, start, 0)


def read_at_second_scan(machine: Machine, scanner: Scanner) -> set[int]:
    machine.read.clear()
    scanner.scan(NOW)
    return set(machine.read)


def scanned(machine: Machine) -> Scanner:
    scanner = Scanner(machine)
    scanner.scan(NOW)
    return scanner


def test_new_and_young_processes_are_read_and_most_settled_ones_are_not() -> None:
    young = process(50, start=NOW - int(SETTLED_S * TICKS_PER_S) + 1)
    machine = Machine(process(1, 0), *(process(pid) for pid in range(100, 180)), young)
    scanner = scanned(machine)
    machine.stats[60] = process(60, start=NOW)

    read = read_at_second_scan(machine, scanner)

    assert {50, 60} <= read
    assert len(read - {50, 60}) <= 80 // TURNS + 1


def test_process_whose_parent_has_ended_is_read_at_once() -> None:
    machine = Machine(process(1, 0), process(10), process(20, 10))
    scanner = scanned(machine)
    del machine.stats[10]
    machine.stats[20] = process(20, 1)

    found = scanner.scan(NOW)

    assert found.ancestors(20) == (1,)
    assert 10 not in found.by_pid


def test_settled_process_that_becomes_another_program_is_known_so_after_its_turn() -> None:
    machine = Machine(process(1, 0), process(10))
    scanner = scanned(machine)
    machine.stats[10] = process(10, name="python")

    names = [scanner.scan(NOW).by_pid[10].name for _ in range(TURNS)]

    assert names[-1] == "python"


def test_scan_holds_a_process_by_pid_and_start() -> None:
    found = Scanner(Machine(process(10, start=7))).scan(NOW)

    assert found.holds(10, 7)
    assert not found.holds(10, 8)
    assert not found.holds(11, 7)
