"""What was done about an incident by the operator's own command."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ActionState(StrEnum):
    """How far a command came. Whatever it is, no second one is run for that incident."""

    RUNNING = "running"
    DONE = "done"  # exit code 0
    FAILED = "failed"  # another exit code, or it could not be started
    TIMED_OUT = "timed_out"  # ended by the server
    LOST = "lost"  # the server ended while it ran: how it went is not known
    HELD_BACK = "held_back"  # a limit of the settings; not made up for later
    DRY_RUN = "dry_run"  # would have run


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRun:
    """The one command that an incident got."""

    incident: str
    job: str
    state: ActionState
    command: tuple[str, ...]
    why: str  # that it was run, or was not
    begun_at: datetime
    ended_at: datetime | None
    exit_code: int | None
    output: str  # the end of both its outputs
