"""The node's processes as a scan of /proc saw them: who is whose child. Not a history.

Scans come one after another, and reading a process costs fifty times what listing it does. So only
what may have changed is read again each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_agent import procfs
from hangwatch_agent.procfs import Stat

MAX_DEPTH = 32
# From then on a process has forked and become another program, if it ever does.
SETTLED_S = 15.0
TURNS = 16  # of so many scans, one reads a settled process again


@dataclass(frozen=True)
class Table:
    """All processes by pid, by parent and by start time."""

    by_pid: dict[int, Stat] = field(default_factory=dict)
    by_parent: dict[int, list[Stat]] = field(default_factory=dict)
    by_start: dict[int, list[Stat]] = field(default_factory=dict)

    def holds(self, pid: int, start_ticks: int) -> bool:
        """Whether this very process was there."""
        stat = self.by_pid.get(pid)
        return stat is not None and stat.start_ticks == start_ticks

    def ancestors(self, pid: int) -> tuple[int, ...]:
        """Parents from the nearest to the first, at most MAX_DEPTH."""
        found: list[int] = []
        stat = self.by_pid.get(pid)
        while stat is not None and stat.parent > 0 and len(found) < MAX_DEPTH:
            found.append(stat.parent)
            stat = self.by_pid.get(stat.parent)
        return tuple(found)


class Scanner:
    """Looks through /proc again and again."""

    def __init__(self, proc: procfs.Procfs) -> None:
        self._proc = proc
        self._last = Table()
        self._number = 0

    def scan(self, now_ticks: int) -> Table:
        """All processes at `now_ticks`, on the clock of `Stat.start_ticks`.

        Read are those that are new, young, or whose parent has ended, and of the others some in
        turn: one that has become another program, or taken a pid that another had, is known so
        after TURNS scans at the latest.
        """
        self._number += 1
        found = Table()
        pids = self._proc.pids()
        present = frozenset(pids)
        settled_ticks = now_ticks - SETTLED_S * procfs.TICKS_PER_S
        for pid in pids:
            stat = self._last.by_pid.get(pid)
            is_same = (
                stat is not None
                and stat.start_ticks < settled_ticks
                and (stat.parent in present or stat.parent == 0)
                and (pid + self._number) % TURNS
            )
            if not is_same:
                stat = self._proc.stat(pid)
            if stat is not None:
                add(found, stat)
        self._last = found
        return found


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
