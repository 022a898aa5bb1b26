"""The descendants of one rank's process over time. What they are for is told by `children`.

A scan of /proc finds all of them, but on a node with thousands of processes it comes only every
ten seconds or so: far too late for a rank that waits for a program it has just started. So they
are asked for at every look too, of the kernel's own lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_agent import children, procfs, wire
from hangwatch_agent.shares import Share

THREADS_EVERY_S = 5.0  # the lists of a process's other threads are many
# Of a rank that goes on: nobody asks what its children do until it has stood still for longer.
MOVING_EVERY_S = 5.0


@dataclass
class Child:
    """A descendant with its history."""

    stat: procfs.Stat
    role: str
    is_python: bool
    share: Share = field(default_factory=Share)
    io: Share = field(default_factory=lambda: Share(per_s=1.0))


class Offspring:
    """Follows the descendants of process `pid`, which was started with `arguments`."""

    def __init__(self, proc: procfs.Procfs, pid: int, arguments: tuple[str, ...]) -> None:
        self.known: dict[int, Child] = {}
        self._proc = proc
        self._pid = pid
        self._arguments = arguments
        self._asked_threads_s = float("-inf")
        self._looked_s = float("-inf")
        self._seen: tuple[wire.ChildFacts, ...] = ()

    def adopt(self, below: list[procfs.Stat]) -> None:
        """Take the descendants from a scan of /proc, keeping the history of known ones."""
        before = self.known
        self.known = {}
        for stat in below:
            child = before.get(stat.pid)
            if child is None or child.stat.start_ticks != stat.start_ticks:
                child = self._new(stat)
            self.known[stat.pid] = child

    def observe(
        self, now_s: float, *, is_waiting: bool, is_moving: bool = False
    ) -> tuple[wire.ChildFacts, ...]:
        """The facts at `now_s` (monotonic), also of children that started just now.

        `is_waiting`: the rank's main thread hardly runs, perhaps because it waits for one of them,
        which another of its threads may have started. `is_moving`: the rank goes on all the same;
        then the facts may be some seconds old.
        """
        if not is_moving or now_s - self._looked_s >= MOVING_EVERY_S:
            self._looked_s = now_s
            self._seen = self._look(now_s, is_waiting)
        return self._seen

    def _look(self, now_s: float, is_waiting: bool) -> tuple[wire.ChildFacts, ...]:
        is_thorough = is_waiting and now_s - self._asked_threads_s >= THREADS_EVERY_S
        if is_thorough:
            self._asked_threads_s = now_s
        self._find(of_all_threads=is_thorough)
        facts = (
            self._facts(pid, child, now_s, is_waiting) for pid, child in list(self.known.items())
        )
        return tuple(fact for fact in facts if fact is not None)

    def _find(self, *, of_all_threads: bool) -> None:
        """Parents before children, since a child's role hangs on its parent's."""
        waiting, seen = [self._pid], {self._pid}
        while waiting and len(self.known) < children.MAX_CHILDREN:
            for pid in self._proc.children(waiting.pop(0), of_all_threads=of_all_threads):
                if pid in seen or not (child := self._child(pid)):
                    continue
                seen.add(pid)
                # Loader workers are the many, and hardly ever start a program.
                if of_all_threads or child.role != children.LOADER:
                    waiting.append(pid)

    def _child(self, pid: int) -> Child | None:
        """The child known by that pid, or a new one, while there is room."""
        if pid not in self.known and len(self.known) < children.MAX_CHILDREN:
            stat = self._proc.stat(pid)
            if stat is not None:
                self.known[pid] = self._new(stat)
        return self.known.get(pid)

    def _facts(
        self, pid: int, child: Child, now_s: float, is_waiting: bool
    ) -> wire.ChildFacts | None:
        stat = self._proc.stat(pid)
        if stat is None or stat.start_ticks != child.stat.start_ticks:
            del self.known[pid]
            return None
        self._renew(child, stat)
        io_bytes = self._proc.io_bytes(pid) if is_waiting else None
        return wire.ChildFacts(
            pid=pid,
            name=stat.name,
            role=child.role,
            state=stat.state,
            wchan=self._proc.wchan(pid)[:64],
            cpu_share=child.share.add(now_s, stat.cpu_ticks + stat.waited_ticks),
            io_rate=None if io_bytes is None else child.io.add(now_s, io_bytes),
            parent=stat.parent,
        )

    def _renew(self, child: Child, stat: procfs.Stat) -> None:
        """Judge it anew once it runs another program: until then a fork looks like its parent."""
        is_another = (stat.name, stat.stack_start) != (child.stat.name, child.stat.stack_start)
        if is_another and stat.stack_start:
            judged = self._new(stat)
            child.stat, child.role, child.is_python = stat, judged.role, judged.is_python

    def _new(self, stat: procfs.Stat) -> Child:
        arguments = self._proc.arguments(stat.pid)
        parent = self.known.get(stat.parent)
        role = children.role_of(
            stat.name, arguments, parent.role if parent else "", self._arguments
        )
        runs_python = children.is_python(arguments, self._proc.executable(stat.pid))
        return Child(stat=stat, role=role, is_python=runs_python)
