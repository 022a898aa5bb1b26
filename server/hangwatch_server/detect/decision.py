"""What detection answers: the state of a job, why, and which captures it wants. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server.model import Evidence, Limits, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Take these captures now."""

    ranks: tuple[int, ...]
    kinds: tuple[wire.CaptureKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The state of a job attempt at the moment of a snapshot."""

    state: State
    stalled_s: float
    limits: Limits
    wishes: tuple[Wish, ...] = ()
    reason: str = ""  # in words, for the incident's history
    # What only memory can tell: who is usually last, and what restarts hide.
    evidence: tuple[Evidence, ...] = ()
    is_frozen: bool | None = None  # None: not judged, or not enough is known
    is_repeated: bool = False  # earlier attempts stood still here too, or came no further
    is_over: bool = False  # every process has been gone for so long that no restart is under way
