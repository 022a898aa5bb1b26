"""One healthy job, step by step: when each rank enters its next call, and what it does until then.

The job makes one all_reduce of all ranks per step; half of the ranks share a group of their own in
which they evaluate at times. All of it comes from one seed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import deque
from dataclasses import dataclass

from tests.soak.odd import COMPILE_FIRST, KINDS, WORK, Doing, Kind

from hangwatch_agent import wire
from hangwatch_server.model import GroupView

WORLD = 8
RANKS_PER_NODE = 4
APART = range(WORLD // 2)  # the ranks of the second group
ALL_GID, APART_GID = "a" * 12, "b" * 12
GROUPS = {
    ALL_GID: GroupView(
        gid=ALL_GID, name="all", description="", backend="gloo", ranks=tuple(range(WORLD))
    ),
    APART_GID: GroupView(
        gid=APART_GID, name="apart", description="", backend="gloo", ranks=tuple(APART)
    ),
}
JITTER = 0.3
APART_EVERY_S = 0.5  # between two calls of ranks that evaluate apart
_DUMPS_S = (2.0, 4.0)  # of a stall, when the probe takes entries; then every ten seconds
_KEPT_STEPS = 256


@dataclass(frozen=True)
class Step:
    number: int  # of its all_reduce, from 1
    start_s: float
    entered_s: tuple[float, ...]  # per rank
    doing: tuple[Doing, ...]
    apart_since_s: float | None = None

    @property
    def done_s(self) -> float:
        return max(self.entered_s)


class Job:
    """Knows its past steps; `advance` makes the next ones. `due` are pauses that are to come."""

    def __init__(self, step_s: float, seed: int) -> None:
        self.step_s = step_s
        self.dice = random.Random(seed)
        self.due: deque[tuple[float, Kind]] = deque()
        self.paused: dict[str, int] = {}  # how many pauses there were of each kind
        first = self._step(1, 0.0, ((0.0, COMPILE_FIRST),))
        self.steps: deque[Step] = deque([first], maxlen=_KEPT_STEPS)

    def advance(self, until_s: float) -> None:
        """Make steps until the last one ends after this moment."""
        while self.steps[-1].done_s <= until_s:
            last = self.steps[-1]
            now: list[tuple[float, Kind]] = []
            while self.due and self.due[0][0] <= last.done_s:
                now.append(self.due.popleft())
            self.steps.append(self._step(last.number + 1, last.done_s, tuple(now)))

    def skip(self, by_s: float) -> None:
        """Let this much of the usual course pass unseen: all that is due comes sooner."""
        self.due = deque((at_s - by_s, kind) for at_s, kind in self.due)

    def schedule(self, hours: float) -> None:
        """Throw when each kind of pause happens."""
        end_s = hours * 3600
        due = []
        for kind in KINDS:
            at_s = self.dice.expovariate(kind.per_day / 86_400)
            while at_s < end_s:
                due.append((at_s, kind))
                at_s += self.dice.expovariate(kind.per_day / 86_400)
        self.due = deque(sorted(due, key=lambda item: item[0]))

    def _step(self, number: int, start_s: float, pauses: tuple[tuple[float, Kind], ...]) -> Step:
        work_s = [self.step_s * (1 + JITTER * self.dice.uniform(-1, 1)) for _ in range(WORLD)]
        doing = [WORK] * WORLD
        apart_since_s = None
        for _, kind in pauses:
            self.paused[kind.name] = self.paused.get(kind.name, 0) + 1
            length_s = kind.length_s(self.dice)
            if kind.is_apart:
                apart_since_s = start_s
            for rank in self._who(kind):
                work_s[rank] += length_s
                doing[rank] = kind.doing
        entered = tuple(start_s + length_s for length_s in work_s)
        return Step(number, start_s, entered, tuple(doing), apart_since_s)

    def _who(self, kind: Kind) -> range | tuple[int, ...]:
        if kind.is_apart:
            return APART
        return range(WORLD) if kind.is_for_all else (self.dice.randrange(WORLD),)

    def step_at(self, at_s: float) -> Step:
        return next((step for step in reversed(self.steps) if step.start_s <= at_s), self.steps[0])

    def doing(self, rank: int, at_s: float) -> Doing | None:
        """What a rank does at a moment; None while it waits in the call."""
        step = self.step_at(at_s)
        return step.doing[rank] if at_s < step.entered_s[rank] else None

    def beat(self, rank: int, at_s: float) -> wire.RankBeat:
        """What the agent says of a rank at a moment."""
        step = self.step_at(at_s)
        is_inside = at_s >= step.entered_s[rank]
        groups = [self._world_beat(rank, at_s, step, is_inside)]
        if rank in APART:
            groups.append(self._apart_beat(at_s, step, is_inside))
        return wire.RankBeat(
            launch="launch",
            rank=rank,
            local_rank=rank % RANKS_PER_NODE,
            world_size=WORLD,
            pid=100 + rank,
            start_ticks=1,
            process=self._facts(rank, at_s, step, is_inside),
            depth=wire.Depth.PROBE,
            is_rank_certain=True,
            is_initialised=True,
            groups=tuple(groups),
        )

    def _world_beat(self, rank: int, at_s: float, step: Step, is_inside: bool) -> wire.GroupBeat:
        number = step.number if is_inside else step.number - 1
        moved_s = step.entered_s[rank] if is_inside else self._entered_before(rank, step)
        stall_s = max(0.0, at_s - _seen(rank, moved_s))
        dump_s = _dump_s(stall_s)
        entries = self._entries(rank, number, at_s - stall_s + dump_s) if dump_s else ()
        return wire.GroupBeat(
            gid=ALL_GID,
            counter=number,
            stall_s=stall_s,
            seq=number,
            entries=entries,
            entries_age_s=stall_s - dump_s if dump_s else None,
            are_entries_current=bool(dump_s),
        )

    def _entered_before(self, rank: int, step: Step) -> float:
        earlier = next((s for s in reversed(self.steps) if s.number == step.number - 1), None)
        return earlier.entered_s[rank] if earlier is not None else 0.0

    def _entries(self, rank: int, number: int, dumped_s: float) -> tuple[wire.Entry, ...]:
        """The newest entries as the probe took them then: they may have finished since."""
        newest = itertools.islice(reversed(self.steps), 8)
        done = {step.number: step.done_s for step in newest}
        return tuple(
            wire.Entry(
                seq=seq,
                op="all_reduce",
                is_retired=done.get(seq, 0.0) <= dumped_s,
                input_sizes=((64,),),
                output_sizes=((64,),),
                input_dtypes=("Float",),
                output_dtypes=("Float",),
                record_id=seq,
                timeout_s=1800.0,
            )
            for seq in range(max(1, number - 3), number + 1)
        )

    def _apart_beat(self, at_s: float, step: Step, is_inside: bool) -> wire.GroupBeat:
        since_s = step.apart_since_s
        if since_s is None or is_inside:
            return wire.GroupBeat(gid=APART_GID, counter=0, stall_s=at_s, seq=0)
        calls = int((at_s - since_s) / APART_EVERY_S)
        return wire.GroupBeat(gid=APART_GID, counter=calls, stall_s=0.3, seq=calls)

    def _facts(self, rank: int, at_s: float, step: Step, is_inside: bool) -> wire.ProcessFacts:
        doing = Doing(cpu=0.0, state="S") if is_inside else step.doing[rank]
        since_s = step.entered_s[rank] if is_inside else step.start_s
        spent_s = at_s - since_s
        return wire.ProcessFacts(
            state=doing.state,
            wchan=doing.wchan,
            main_cpu_s=since_s * 0.5 + spent_s * doing.cpu,
            cpu_s=since_s * 0.5 + spent_s * (doing.cpu + 0.01),
            main_cpu_share=doing.cpu,
            main_still_s=spent_s if doing.cpu == 0.0 else 0.0,
            main_delay_share=0.0,
            io_bytes=int(since_s * 1e6 + spent_s * doing.io_per_s),
            children=() if is_inside else doing.children,
        )


def _seen(rank: int, moved_s: float) -> float:
    """When the probe of a rank, which looks once a second, saw that its counter had moved."""
    phase_s = rank / WORLD
    return math.ceil(moved_s - phase_s) + phase_s


def _dump_s(stall_s: float) -> float:
    """At which age of the stall the newest entries were taken; 0 while there are none."""
    if stall_s >= _DUMPS_S[-1] + 10.0:
        return _DUMPS_S[-1] + 10.0 * ((stall_s - _DUMPS_S[-1]) // 10.0)
    return max((age_s for age_s in _DUMPS_S if age_s <= stall_s), default=0.0)
