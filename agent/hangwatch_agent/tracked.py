"""One rank's process with all that was observed of it. Observes nothing itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hangwatch_agent import discover, launch, limits, logs, ranks, wire
from hangwatch_agent.discover import Candidate
from hangwatch_agent.groups import Groups
from hangwatch_agent.payload import RecordPayload
from hangwatch_agent.process import Identity, Process
from hangwatch_agent.records import Record


@dataclass
class Tracked:
    """One rank's process with all that was observed of it."""

    candidate: Candidate
    launch: wire.Launch
    process: Process
    found_s: float = 0.0  # monotonic
    record: Record | None = None  # None also once its file has been removed
    facts: wire.ProcessFacts = field(default_factory=lambda: wire.ProcessFacts(state="?"))
    translated: ranks.Translated | None = None
    socket_answers: bool | None = None
    inner_pid: int | None = None  # in its own pid namespace, where that is another number
    gpu: wire.GpuFacts | None = None
    groups: Groups = field(init=False)
    problem: str = ""  # why what its record says is not passed on

    def __post_init__(self) -> None:
        self.groups = Groups(self.launch.key)

    @property
    def own_pids(self) -> tuple[int, ...]:
        """What it may call itself: libraries in the job know the inner number alone."""
        return (self.identity.pid,) if self.inner_pid is None else (self.inner_pid,)

    @property
    def identity(self) -> Identity:
        return self.candidate.identity

    @property
    def key(self) -> tuple[str, int]:
        return self.launch.key, self.candidate.rank

    @property
    def payload(self) -> RecordPayload | None:
        return self.record.payload if self.record else None

    @property
    def socket(self) -> Path | None:
        """Where the worker socket must be; the payload's own path is never followed."""
        if self.candidate.record is None or self.payload is None:
            return None
        has_socket = bool(self.payload.socket)
        return self.candidate.record.with_suffix(".sock") if has_socket else None

    def is_moving(self, now_ns: int) -> bool:
        """Whether it has made a call just now, as far as its probe sees them."""
        return self.payload is not None and ranks.is_moving(self.payload, now_ns)

    def is_silent(self, now_ns: int) -> bool:
        return self.payload is not None and ranks.is_silent(self.payload, now_ns)

    def told(self, now_ns: int) -> ranks.Translated:
        """Its beat with ages as of `now_ns`; bare where the server would not take the record's."""
        told = None
        if self.payload is not None:
            told = self._told_by(self.payload, now_ns)
            self._note(limits.problem(told.beat))
        if told is None or self.problem:
            return ranks.bare(self._position(), self.facts, self._lack())
        return told

    def _told_by(self, payload: RecordPayload, now_ns: int) -> ranks.Translated:
        facts = ranks.with_answer(
            self.facts, is_silent=self.is_silent(now_ns), socket_answers=self.socket_answers
        )
        described = self.groups.describe(payload.groups, now_ns)
        return ranks.probed(self._position(), facts, payload, described, now_ns)

    def _position(self) -> ranks.Position:
        candidate = self.candidate
        return ranks.Position(
            launch=self.launch,
            rank=candidate.rank,
            world_size=candidate.world_size,
            local_rank=candidate.local_rank,
            pid=self.identity.pid,
            start_ticks=self.identity.start_ticks,
            is_certain=candidate.is_certain,
            script=launch.script_of(candidate.arguments),
            inner_pid=self.inner_pid,
            gpu=self.gpu,
        )

    def _note(self, problem: str) -> None:
        if problem and problem != self.problem:
            logs.warning("record_not_passed_on", rank=self.candidate.rank, why=problem)
        self.problem = problem

    def _lack(self) -> str:
        """Why nothing that a probe says of this rank is passed on."""
        if self.payload is not None:
            return f"what the probe's record says cannot be passed on: {self.problem}"
        if self.candidate.record is not None:
            return ranks.RECORD_GONE
        waits = discover.RUN_DIR_NAME in self.candidate.environ
        return ranks.NO_RECORD_YET if waits else ranks.NO_PROBE
