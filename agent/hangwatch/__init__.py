"""The user's own marks: `phase("checkpoint")` and `step(n)`. Not the probe: nothing here watches.

Both calls only remember what they were told; without a probe in the process nothing else happens.
They never raise, whatever they are given, so that they may stay in code that runs without a probe.
`import hangwatch.auto` starts the probe where `hangwatch run` is not used.
"""

from __future__ import annotations

import contextlib
import threading
import time
from types import TracebackType
from typing import Any

__all__ = ["phase", "step"]

MAX_NAME = 80  # characters of a phase's name
MAX_DEPTH = 64  # nested phases remembered


class Phase:
    """One announced phase. A context manager ends it; a plain call lasts until the next."""

    __slots__ = ("is_nested", "limit_s", "name", "since_ns")

    def __init__(self, name: str, limit_s: float | None) -> None:
        self.name = name
        self.limit_s = limit_s
        self.since_ns = time.monotonic_ns()
        self.is_nested = False

    def __enter__(self) -> Phase:
        self.is_nested = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        marks.end(self)


class Marks:
    """The step and the stack of phases of this process, read by the probe's thread."""

    def __init__(self) -> None:
        self.step: int | None = None
        self._phases: list[Phase] = []
        self._lock = threading.Lock()

    def current(self) -> Phase | None:
        """The innermost phase, or None."""
        phases = self._phases
        return phases[-1] if phases else None

    def begin(self, phase: Phase) -> None:
        with self._lock:
            # A phase that was announced by a plain call ends where the next one begins.
            kept = [one for one in self._phases if one.is_nested]
            self._phases = [*kept, phase][-MAX_DEPTH:]

    def end(self, phase: Phase | None) -> None:
        """End this phase and all inside it; None ends the plainly called one."""
        with self._lock:
            if phase is None:
                self._phases = [one for one in self._phases if one.is_nested]
            elif phase in self._phases:
                self._phases = self._phases[: self._phases.index(phase)]


marks = Marks()


def phase(name: str | None, limit_s: float | None = None) -> Phase:
    """Announce what the next stretch of work is: `with phase("checkpoint", limit_s=900): ...`.

    As a plain call it lasts until the next phase; `phase(None)` or `phase("")` ends it. `limit_s`
    says for how long other ranks may wait for this one inside the phase, in seconds.
    """
    announced = Phase("", None)
    # The marks sit in training code: nothing a caller passes may raise here.
    with contextlib.suppress(Exception):
        text = "" if name is None else str(name)[:MAX_NAME]
        if not text:
            marks.end(None)
            return announced
        announced = Phase(text, _seconds(limit_s))
        marks.begin(announced)
    return announced


def step(number: int) -> None:
    """Announce the training step that this rank is in."""
    with contextlib.suppress(Exception):
        marks.step = int(number)


def _seconds(value: Any) -> float | None:
    """A positive finite number of seconds, else None: callers may pass anything."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 < seconds < 1e9 else None
