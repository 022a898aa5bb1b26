"""One pass over a snapshot: each rank's fate, standing on each group, and the stack that counts.

A stack counts as present evidence only when it was captured after the rank's counters last moved:
an older one shows where the rank was, not where it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from hangwatch_agent.wire import Entry, GroupBeat, RankBeat
from hangwatch_server.diagnose import coverage, hardware, process, standing
from hangwatch_server.diagnose.bounds import Bound
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.settings import DiagnoseSettings
from hangwatch_server.diagnose.standing import Standings
from hangwatch_server.model import (
    Activity,
    Coverage,
    GroupView,
    Link,
    RankView,
    Snapshot,
    StackFacts,
)

OUTSIDE = frozenset(
    {
        Activity.DATALOADER,
        Activity.CHECKPOINT,
        Activity.COMPILE,
        Activity.MODEL_LOADING,
        Activity.EVALUATION,
        Activity.LOCK,
        Activity.SHUTDOWN,
        Activity.USER_CODE,
    }
)
BUSY_CPU_SHARE = 0.5  # of a core: the main thread works, or spins
RECENT_STACK_S = 15.0  # older stacks say nothing of a rank that still moves
_CAPTURE_SLACK_S = 1.0  # heartbeat interval: a counter's age is known only that well

_MAX_STACKS = 64


@dataclass(slots=True)
class Survey:
    """What later steps ask about ranks; built once per diagnosis."""

    snapshot: Snapshot
    settings: DiagnoseSettings
    fates: dict[int, Fate]
    standings: Standings  # gid -> rank -> standing
    alive: frozenset[int]
    silent: frozenset[int]
    gone: frozenset[int]
    with_stacks: frozenset[int]
    told_by_ras: frozenset[int] = frozenset()
    failed_gpus: frozenset[int] = frozenset()  # ranks whose GPU raised an error of its hardware
    well: frozenset[int] = frozenset()  # alive, and no such error
    prompt: frozenset[int] = frozenset()  # well, and what they say is of this moment
    reporting: int = 0  # ranks whose agents are heard in time
    # Size and epoch -> stem -> groups, as far as they were asked for (see `calls.siblings`).
    alike: dict[tuple[int, int], dict[str, list[GroupView]]] = field(default_factory=dict)
    _coverage: Coverage | None = None
    bounds: dict[str, Bound] = field(default_factory=dict)  # by gid, as far as they were asked for
    # gid -> seq -> rank -> its call, of groups that were asked about (see `calls.record`).
    recorded: dict[str, dict[int, dict[int, Entry]]] = field(default_factory=dict)
    _used: dict[int, frozenset[int]] = field(default_factory=dict)
    _shares_a_gpu: bool | None = None

    def view(self, rank: int) -> RankView | None:
        return self.snapshot.ranks.get(rank)

    def beat(self, rank: int) -> RankBeat | None:
        view = self.view(rank)
        return view.beat if view is not None else None

    def coverage(self) -> Coverage:
        """How much of the job this is made of; the same for every finding."""
        if self._coverage is None:
            self._coverage = coverage.coverage(self.snapshot)
        return self._coverage

    def shares_a_gpu(self) -> bool:
        """Whether two ranks of a node use one GPU; the same for every finding."""
        if self._shares_a_gpu is None:
            self._shares_a_gpu = hardware.is_shared(self.snapshot.ranks.values())
        return self._shares_a_gpu

    def words(self, rank: int, gid: str) -> GroupBeat | None:
        """What this rank itself says of a group."""
        beat = self.beat(rank)
        if beat is None or beat.is_destroyed:
            return None
        return next((group for group in reversed(beat.groups) if group.gid == gid), None)

    def fate(self, rank: int) -> Fate:
        return self.fates.get(rank, Fate.SILENT)

    def outsiders_of_used(self, least: int) -> frozenset[int]:
        """Ranks that are in no group by their own account, but are members of groups that somebody
        reports and has finished collective `least` in."""
        known = self._used.get(least)
        if known is None:
            views = self.snapshot.ranks.items()
            inside = {r for r, view in views if view.beat is not None and view.beat.is_initialised}
            used = (
                group.ranks
                for group in self.snapshot.groups.values()
                if not inside.issuperset(group.ranks) and self._is_used(group, least)
            )
            known = frozenset(set().union(*used) - inside)
            self._used[least] = known
        return known

    def _is_used(self, group: GroupView, least: int) -> bool:
        """What a rank says of a group that it is no member of does not count."""
        return any(
            rank in group.ranks and (least < 0 or held.completed >= least)
            for rank, held in self.standings.each(group.gid)
        )

    def fates_are_alive(self, ranks: Iterable[int]) -> bool:
        return all(self.fate(rank) is Fate.ALIVE for rank in ranks)

    def is_over(self) -> bool:
        """Whether no process that was ever reported is left."""
        seen = [rank for rank, view in self.snapshot.ranks.items() if view.beat is not None]
        return bool(seen) and all(self.fates[rank] is Fate.GONE for rank in seen)

    def stack(self, rank: int) -> StackFacts | None:
        """The newest stack taken since this rank's counters last moved, or None."""
        view = self.view(rank)
        if view is None or view.stack is None or view.beat is None:
            return None
        stack = view.stack
        if stack.pid != view.beat.pid or stack.age_s > standing.quiet_s(view) + _CAPTURE_SLACK_S:
            return None
        return stack

    def stacks_of(self, ranks: Iterable[int]) -> tuple[StackFacts, ...]:
        """Stacks at hand of these ranks; the captured ones are few, and 64 are enough."""
        found = (stack for rank in ranks if (stack := self.stack(rank)) is not None)
        return tuple(itertools.islice(found, _MAX_STACKS))

    def recent_stack(self, rank: int) -> StackFacts | None:
        """The stack to describe a rank by: a counting one, or one that is only seconds old."""
        stack = self.stack(rank)
        view = self.view(rank)
        if stack is not None or view is None or view.stack is None or view.beat is None:
            return stack
        is_recent = view.stack.age_s <= RECENT_STACK_S and view.stack.pid == view.beat.pid
        return view.stack if is_recent else None

    def is_outside(self, rank: int) -> bool:
        """Whether its stack shows the main thread outside every collective."""
        stack = self.stack(rank)
        if stack is None or stack.activity not in OUTSIDE or waits_in_ddp(stack):
            return False
        return not (stack.is_opaque and self.has_front(rank))

    def is_inside(self, rank: int) -> bool:
        """Whether its stack shows the main thread in a collective, of whichever group."""
        stack = self.stack(rank)
        return stack is not None and stack.activity is Activity.COLLECTIVE

    def has_front(self, rank: int) -> bool:
        """Whether it issued a collective that is not finished: it may be inside its wait()."""
        beat = self.beat(rank)
        return beat is not None and any(
            held.fronts
            for group in beat.groups
            if group.gid in self.standings.with_fronts
            and (held := self.standings[group.gid].get(rank)) is not None
        )

    def cannot_run(self, rank: int) -> bool:
        """Whether nothing in its process answers: it waits for nobody, it stands."""
        beat = self.beat(rank)
        return beat is not None and beat.process.is_unresponsive

    def stands_elsewhere(self, rank: int) -> bool:
        """Whether it is seen outside of every collective, or cannot run at all."""
        beat = self.beat(rank)
        if beat is None or self.is_outside(rank) or beat.process.is_unresponsive:
            return beat is not None
        # The kernel keeps it; or its main thread runs with the lock that a wait would give back.
        facts = beat.process
        return facts.state == "D" or (facts.is_gil_held and self._is_busy(rank))

    def _is_busy(self, rank: int) -> bool:
        beat = self.beat(rank)
        share = beat.process.main_cpu_share if beat is not None else None
        return share is not None and share >= BUSY_CPU_SHARE

    def is_idle(self, rank: int) -> bool:
        beat = self.beat(rank)
        share = beat.process.main_cpu_share if beat is not None else None
        return share is not None and share < self.settings.idle_cpu_share


def waits_in_ddp(stack: StackFacts) -> bool:
    return stack.is_in_backward or stack.is_in_forward or stack.is_in_join


def survey(snapshot: Snapshot, settings: DiagnoseSettings) -> Survey:
    views = snapshot.ranks
    fates = {rank: process.fate(view) for rank, view in views.items()}
    by_fate: dict[Fate, list[int]] = {fate: [] for fate in Fate}
    for rank, fate in fates.items():
        by_fate[fate].append(rank)
    alive = frozenset(by_fate[Fate.ALIVE])
    failed = frozenset([rank for rank, view in views.items() if hardware.failure(view.beat)])
    well = alive - failed
    return Survey(
        snapshot,
        settings,
        fates,
        Standings(views),
        alive=alive,
        silent=frozenset(by_fate[Fate.SILENT]),
        with_stacks=frozenset([r for r, view in views.items() if view.stack is not None]),
        gone=frozenset(by_fate[Fate.GONE]),
        failed_gpus=failed,
        well=well,
        prompt=frozenset([rank for rank in well if standing.is_prompt(views[rank])]),
        reporting=[view.link for view in views.values()].count(Link.LIVE),
        told_by_ras=frozenset(m.rank for item in snapshot.ras for m in item.members),
    )
