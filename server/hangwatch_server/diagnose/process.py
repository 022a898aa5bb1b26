"""What the operating system's facts say of a rank, before any look at its communication."""

from __future__ import annotations

from enum import IntEnum

from hangwatch_agent.wire import ProcessFacts
from hangwatch_server import process_states
from hangwatch_server.model import Link, RankView

_SIGNALS = {
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
}


class Fate(IntEnum):
    """How far a rank's own account of itself can be trusted, best first."""

    ALIVE = 0
    HELD = 1  # alive, but unable to report: interpreter lock held, unresponsive, or in D state
    LATE = 2  # its agent is late: what it said is old, not wrong
    SILENT = 3  # its node is lost, or it was never seen
    STOPPED = 4
    GONE = 5


# Fates of a process that goes on, as far as the kernel says.
RUNNING = frozenset({Fate.ALIVE, Fate.HELD})


# A stop that is younger may be a look: a debugger or a profiler stops a process while it reads it.
_STOPPED_S = 2.0


def fate(view: RankView | None) -> Fate:
    if view is None or view.beat is None:
        return Fate.SILENT
    process = view.beat.process
    if process_states.has_ended(process):
        return Fate.GONE
    if view.link is Link.LOST:
        return Fate.SILENT
    if process_states.is_stopped(process) and _stands(view):
        return Fate.STOPPED
    if view.link is Link.LATE:
        return Fate.LATE
    if process.is_gil_held or process.is_unresponsive or process.state == "D":
        return Fate.HELD
    return Fate.ALIVE


def _stands(view: RankView) -> bool:
    """Whether a stop has lasted: neither the probe's thread nor the main thread has run since.

    Where no clock tells, a stop by signal is believed and one by a tracer is not.
    """
    assert view.beat is not None  # fate() looked
    process = view.beat.process
    clocks = [age for age in (view.beat.beat_age_s, process.main_still_s) if age is not None]
    if not clocks:
        return process.state == "T"
    return min(clocks) + view.age_s >= _STOPPED_S


def signal_name(number: int) -> str:
    return _SIGNALS.get(number, f"signal {number}")


def was_killed(process: ProcessFacts) -> bool:
    return process.exit_signal is not None or "oom" in process.exit_reason.lower()


def exit_text(process: ProcessFacts) -> str:
    """How the process ended, from evidence only: "was killed by SIGKILL (oom_kill)"."""
    reason = f" ({process.exit_reason})" if process.exit_reason else ""
    if process.exit_signal is not None:
        name = signal_name(process.exit_signal)
        return f"was killed by {name}{'' if process.exit_reason == f'killed by {name}' else reason}"
    if was_killed(process):
        return f"was killed{reason}"
    if process.exit_code is not None:
        return f"exited with code {process.exit_code}{reason}"
    return f"is gone{reason or ', cause unknown'}"
