"""All that the loop keeps of one job between two looks."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from hangwatch_server.board import JobMeta
from hangwatch_server.detect import Memory
from hangwatch_server.model import (
    Axis,
    Finding,
    Incident,
    IncidentState,
    Job,
    Kind,
    Snapshot,
    State,
    Verdict,
)
from hangwatch_server.watch import verdicts
from hangwatch_server.watch.tabled import Tabled

TELL_EVERY_S = 1.0
# From here on a pass over all ranks would hold up the event loop noticeably: it goes to a thread.
THREAD_FROM_RANKS = 2_000
TIMELINE_S = 1800.0
POINT_EVERY_S = 1.0
TIMELINE_POINTS = round(TIMELINE_S / POINT_EVERY_S)
PHASE_CHARS = 40
_OVER = (State.FINISHED, State.FAILED)


@dataclass(frozen=True, slots=True)
class Point:
    """How a job went up to this moment, since the point before."""

    at_s: float
    calls_per_s: float  # of each reporting rank
    state: State
    phase: str = ""
    attempt: int = 1


@dataclass(slots=True)
class Watched:
    """One job on the board, as this process sees it."""

    id: str
    first_seen: datetime
    last_seen: datetime
    meta: JobMeta
    snapshot: Snapshot
    verdict: Verdict  # as everybody sees it
    draft: Verdict  # of the look under way: shown once it has its incident and index
    memory: Memory = field(default_factory=Memory)
    finding: Finding = field(default_factory=lambda: Finding(kind=Kind.NONE))
    is_loaded: bool = False  # what the database knows of the job has been read
    is_followed: bool = False  # another server owns its detection; `Following` knows what it stores
    is_ours: bool = False  # at the newest look this server decided, and could write it down
    away_since_s: float | None = None  # the database has not taken what is to be written of it
    inherited: Incident | None = None  # active when this process first saw the job
    steady_since_s: float | None = None  # full and healthy since, while an incident is inherited
    stored_key: verdicts.Key | None = None
    saved_s: float | None = None
    saved_version: int = -1
    timeline_due_s: float = math.inf  # a first verdict is stored before there is anything to draw
    applied_key: verdicts.Key | None = None
    applied_over: bool = False
    replaced: list[Verdict] = field(default_factory=list)  # attempts whose end is not stored yet
    incident: Incident | None = None  # the one that the verdict names
    moment_key: tuple[str, IncidentState, Kind, str] | None = None  # see `moments.key`
    told: tuple[Verdict, JobMeta] | None = None  # what listeners were last told of
    told_s: float = 0.0
    tabled: Tabled | None = None  # once somebody looked
    # The mesh, with what it was recognised from: groups and world size seldom change.
    axes: tuple[tuple[frozenset[str], int], tuple[Axis, ...]] | None = None
    tabling: asyncio.Lock = field(default_factory=asyncio.Lock)
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=TIMELINE_POINTS))
    counted: tuple[float, int] | None = None  # when, and how many calls, at the newest point

    @property
    def is_large(self) -> bool:
        return self.snapshot.world_size >= THREAD_FROM_RANKS

    def mark(self, now_s: float) -> None:
        """Add a point of the timeline, at most one a second; none of a job that stays over."""
        if self.counted is None:
            self.counted = now_s, self.meta.calls
        since_s, calls = self.counted
        if now_s - since_s < POINT_EVERY_S or self._stays_over(calls):
            return
        self.counted = now_s, self.meta.calls
        per_s = (self.meta.calls - calls) / (now_s - since_s)
        beats = (view.beat for view in self.snapshot.ranks.values())
        phases = Counter(beat.phase for beat in beats if beat is not None and beat.phase)
        self.points.append(
            Point(
                now_s,
                per_s / max(self.meta.reporting, 1),
                self.verdict.state,
                max(phases, key=lambda name: (phases[name], name), default="")[:PHASE_CHARS],
                self.snapshot.attempt,
            )
        )
        while self.points[0].at_s < now_s - TIMELINE_S:
            self.points.popleft()

    def _stays_over(self, calls: int) -> bool:
        state = self.verdict.state
        was_over = bool(self.points) and self.points[-1].state is state and state in _OVER
        return was_over and self.meta.calls == calls

    def go_on(self, earlier: Iterable[Point]) -> None:
        """Put the points that an earlier process stored before those of this one."""
        self.points = deque((*earlier, *self.points), maxlen=TIMELINE_POINTS)

    def is_news(self, now_s: float) -> bool:
        """Whether to tell listeners: of another verdict at once, of moved numbers once a second."""
        now = (self.verdict, self.meta)
        if now == self.told:
            return False
        is_same = self.told is not None and verdicts.key(self.told[0]) == verdicts.key(now[0])
        if is_same and now_s - self.told_s < TELL_EVERY_S:
            return False
        self.told, self.told_s = now, now_s
        return True

    def job(self, now_s: float) -> Job:
        """The job as lists and pages show it."""
        return self.job_with(self.verdict, now_s)

    def job_with(self, verdict: Verdict, now_s: float) -> Job:
        """The job as it is under this verdict."""
        moved_s = self.meta.moved_s
        return Job(
            id=self.id,
            name=self.meta.name,
            attempt=verdict.attempt,
            world_size=self.snapshot.world_size,
            reporting=verdict.coverage.reporting,
            state=verdict.state,
            verdict=verdict,
            nodes=self.meta.nodes,
            depth=self.meta.depth,
            first_seen=self.first_seen,
            last_seen=self.last_seen,
            progress_age_s=None if moved_s is None else max(0.0, now_s - moved_s),
            script=self.meta.script,
            step=self.meta.step,
            is_live=True,
        )
