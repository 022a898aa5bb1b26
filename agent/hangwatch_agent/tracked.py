"""One rank's process with all that was observed of it. Observes nothing itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hangwatch_agent import ranks, wire
from hangwatch_agent.discover import Candidate
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
    record: Record | None = None
    facts: wire.ProcessFacts = field(default_factory=lambda: wire.ProcessFacts(state="?"))
    translated: ranks.Translated | None = None
    socket_answers: bool | None = None
    inner_pid: int | None = None  # in its own pid namespace, where that is another number
    gpu: wire.GpuFacts | None = None

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
