"""The node's processes as one scan of /proc saw them: who is whose child. Not a history."""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_agent import procfs
from hangwatch_agent.procfs import Stat

MAX_DEPTH = 32


@dataclass(frozen=True)
class Table:
    """All processes by pid, by parent and by start time."""

    by_pid: dict[int, Stat] = field(default_factory=dict)
    by_parent: dict[int, list[Stat]] = field(default_factory=dict)
    by_start: dict[int, list[Stat]] = field(default_factory=dict)

    def ancestors(self, pid: int) -> tuple[int, ...]:
        """Parents from the nearest to the first, at most MAX_DEPTH."""
        found: list[int] = []
        stat = self.by_pid.get(pid)
        while stat is not None and stat.parent > 0 and len(found) < MAX_DEPTH:
            found.append(stat.parent)
            stat = self.by_pid.get(stat.parent)
        return tuple(found)


def scan(proc: procfs.Procfs) -> Table:
    """Read every process once; about 10 µs each."""
    table = Table()
    for pid in proc.pids():
        stat = proc.stat(pid)
        if stat is not None:
            add(table, stat)
    return table


def add(table: Table, stat: Stat) -> None:
    table.by_pid[stat.pid] = stat
    table.by_parent.setdefault(stat.parent, []).append(stat)
    table.by_start.setdefault(stat.start_ticks, []).append(stat)


def add_with_ancestors(table: Table, proc: procfs.Procfs, pid: int) -> None:
    """Complete the table for a process that started after the scan."""
    for _ in range(MAX_DEPTH):
        if pid <= 0 or pid in table.by_pid:
            return
        stat = proc.stat(pid)
        if stat is None:
            return
        add(table, stat)
        pid = stat.parent
