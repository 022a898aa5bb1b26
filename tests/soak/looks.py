"""Looks at a healthy job as the server does: heartbeats in, diagnosis and detection, captures out.

Event-driven: stretches in which no rank can be quiet for as long as a suspicion takes are skipped,
on the job's clock and on that of the looks alike. Agents are lost and come back; the server is
restarted, and stands still for half a minute, now and then.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import msgspec
from tests.soak.job import GROUPS, RANKS_PER_NODE, WORLD, Job
from tests.support import looks

from hangwatch_agent import wire
from hangwatch_server import detect, diagnose
from hangwatch_server.model import (
    Activity,
    Finding,
    Kind,
    Limits,
    Link,
    RankView,
    Snapshot,
    StackFacts,
)
from hangwatch_server.model import State as JobState
from hangwatch_server.watch import findings

_LATE_S, _LOST_S = 5.0, 20.0
_LEAD_S = 12.0  # of usual steps that are looked at before and after each pause
_QUIET_S = 8.0  # a step this short cannot be suspected, whatever was learned
_SETTINGS = detect.DetectSettings()
_AWAY_PER_DAY = {"agent restarted": 6.0, "server restarted": 2.0, "server stood still": 2.0}


@dataclass
class Tally:
    hours: float
    looks: int = 0
    alerts: list[str] = field(default_factory=list)
    suspicions: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)  # changes to each state
    paused: dict[str, int] = field(default_factory=dict)
    steps: int = 0


@dataclass
class _Node:
    phase_s: float
    heard_s: float = 0.0
    away_until_s: float = 0.0
    beats: tuple[wire.RankBeat, ...] = ()


class Soak:
    """One job watched for so many hours of its own time."""

    def __init__(self, step_s: float, hours: float, seed: int = 1) -> None:
        self.job = Job(step_s, seed)
        self.job.schedule(hours)
        self.tally = Tally(hours)
        self._dice = random.Random(seed + 1)
        self._end_s = hours * 3600
        self._skipped_s = 0.0
        self._nodes = [_Node(0.1), _Node(0.6)]
        self._captures: dict[int, list[tuple[float, Activity, str]]] = {}
        self._memory = detect.Memory()
        self._finding = Finding(kind=Kind.NONE)
        self._state = JobState.STARTING
        self._limits: Limits | None = None
        self._away = self._aways()
        self._busy_until_s = 600.0
        self._seen_since_s = 0.0
        self._every_s = 2.0 if step_s > _QUIET_S else 1.0

    def run(self) -> Tally:
        at_s = 0.0
        while at_s + self._skipped_s < self._end_s:
            at_s = self._disturb(at_s)
            self.job.advance(at_s)
            self._hear(at_s)
            self._look(at_s)
            at_s += self._every_s
            self._skip(at_s)
        self.tally.paused, self.tally.steps = self.job.paused, self.job.steps[-1].number
        return self.tally

    def _aways(self) -> list[tuple[float, str]]:
        found = []
        for name, per_day in _AWAY_PER_DAY.items():
            at_s = self._dice.expovariate(per_day / 86_400)
            while at_s < self._end_s:
                found.append((at_s, name))
                at_s += self._dice.expovariate(per_day / 86_400)
        return sorted(found)

    def _disturb(self, at_s: float) -> float:
        """What happens to the watchers at this moment; the moment of the next look."""
        if not self._away or self._away[0][0] > at_s:
            return at_s
        _, name = self._away.pop(0)
        self.job.paused[name] = self.job.paused.get(name, 0) + 1
        if name == "agent restarted":
            node = self._dice.choice(self._nodes)
            node.away_until_s = at_s + self._dice.uniform(2, 40)
        elif name == "server stood still":
            return at_s + self._dice.uniform(6, 90)
        else:
            self._memory = detect.Memory()
            if self._limits is not None:
                self._memory = detect.inherit(self._memory, self._limits, ())
            self._captures.clear()
            self._finding = Finding(kind=Kind.NONE)
            self._seen_since_s = at_s
        return at_s

    def _skip(self, at_s: float) -> None:
        """Pass over usual steps that are too short to be suspected."""
        last = self.job.steps[-1]
        if (self.job.due and self.job.due[0][0] < at_s + _LEAD_S) or last.done_s > at_s + _QUIET_S:
            self._busy_until_s = at_s + 2 * _LEAD_S
        next_s = min((items[0][0] for items in (self.job.due, self._away) if items), default=1e18)
        free_s = min(next_s - at_s - _LEAD_S, self._end_s - self._skipped_s - at_s)
        is_short = self.job.step_s * 1.3 < _QUIET_S
        if not is_short or at_s < self._busy_until_s or free_s <= _LEAD_S:
            return
        self._skipped_s += free_s
        self.job.skip(free_s)
        self._away = [(due_s - free_s, name) for due_s, name in self._away]

    def _hear(self, at_s: float) -> None:
        for index, node in enumerate(self._nodes):
            beat_s = int(at_s - node.phase_s) + node.phase_s
            if beat_s < node.away_until_s or beat_s <= node.heard_s:
                continue
            ranks = range(index * RANKS_PER_NODE, (index + 1) * RANKS_PER_NODE)
            node.beats = tuple(self.job.beat(rank, beat_s) for rank in ranks)
            if beat_s > node.heard_s + _LATE_S:
                node.beats = tuple(map(_from_new_agent, node.beats))
            node.heard_s = beat_s

    def _look(self, at_s: float) -> None:
        snapshot = self._snapshot(at_s)
        if detect.needs_diagnosis(snapshot, self._memory, _SETTINGS):
            found = findings.main(diagnose.diagnose(snapshot), self._finding, self._memory)
        else:
            found = Finding(kind=Kind.NONE)
        self._memory, decision = detect.step(self._memory, snapshot, found, _SETTINGS)
        self._finding, self._limits = found, decision.limits
        self.tally.looks += 1
        if decision.state is not self._state:
            self._changed(at_s, decision, found)
        for wish in decision.wishes:
            if wire.CaptureKind.STACKS in wish.kinds:
                for rank in wish.ranks:
                    self._capture(rank, at_s)

    def _changed(self, at_s: float, decision: detect.Decision, found: Finding) -> None:
        self._state = decision.state
        self.tally.states[decision.state] += 1
        ranks = [culprit.rank for culprit in found.culprits]
        doing = [self.job.doing(rank, at_s) for rank in ranks[:1]]
        what = f"{found.kind} rank {found.culprit_ranks or '-'} {doing}"
        if decision.state is JobState.SUSPECTED:
            self.tally.suspicions[found.kind] += 1
        if decision.state is JobState.HUNG:
            hour = (at_s + self._skipped_s) / 3600
            self.tally.alerts.append(
                f"at {hour:.2f} h: {what}: {decision.reason}; {decision.limits.why}"
            )

    def _capture(self, rank: int, at_s: float) -> None:
        doing = self.job.doing(rank, at_s)
        activity = Activity.COLLECTIVE if doing is None else doing.activity
        leaf = "distributed_c10d.py:2 in all_reduce" if doing is None else doing.leaf
        taken = (at_s, activity, leaf or f"train.py:{self._dice.randrange(1, 400)} in forward")
        self._captures[rank] = [*self._captures.get(rank, ()), taken][-8:]

    def _snapshot(self, at_s: float) -> Snapshot:
        views: dict[int, RankView] = {}
        for index, node in enumerate(self._nodes):
            age_s = max(0.0, at_s - node.heard_s)
            link = Link.LIVE
            if age_s >= _LATE_S:
                link = Link.LATE if age_s < _LOST_S else Link.LOST
            for place in range(RANKS_PER_NODE):
                rank = index * RANKS_PER_NODE + place
                views[rank] = RankView(
                    rank=rank,
                    node=f"node-{index}",
                    link=link,
                    age_s=age_s,
                    beat=node.beats[place] if node.beats else None,
                    stack=self._stack(rank, at_s),
                )
        return Snapshot(
            job="soak",
            attempt=1,
            world_size=WORLD,
            ranks=views,
            groups=GROUPS,
            taken_s=1000.0 + at_s,
            age_s=at_s - self._seen_since_s,
        )

    def _stack(self, rank: int, at_s: float) -> StackFacts | None:
        taken = [item for item in self._captures.get(rank, ()) if item[0] < at_s]
        if not taken or at_s - taken[-1][0] > 120.0:
            return None
        facts = looks.facts(rank, taken, at_s)
        is_inside = facts is not None and facts.activity is Activity.COLLECTIVE
        return replace(facts, op="all_reduce") if facts is not None and is_inside else facts


def _from_new_agent(beat: wire.RankBeat) -> wire.RankBeat:
    """An agent that has just started cannot say yet what moved since."""
    facts = msgspec.structs.replace(beat.process, main_cpu_share=None, main_still_s=0.0)
    return msgspec.structs.replace(beat, process=facts)
