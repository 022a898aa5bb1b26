"""The user's own marks: `phase("checkpoint")` and `step(n)`. Not the probe: nothing here watches.

Both calls only remember what they were told; without a probe in the process nothing else happens.
They never raise, whatever they are given, so that they may stay in code that runs without a probe.
They take no lock: they may be called from a signal handler, and from a child forked at any moment.
`import hangwatch.auto` starts the probe where `hangwatch run` is not used.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from types import TracebackType
from typing import Any, Callable, TypeVar

__all__ = ["phase", "step"]

MAX_NAME = 80  # characters of a phase's name
MAX_DEPTH = 64  # nested phases remembered per thread
MAX_THREADS = 64  # with a phase at a time
MAX_STEP = 2**63 - 1  # what a record can carry

F = TypeVar("F", bound=Callable[..., Any])


class Phase:
    """One announced phase. A context manager ends it; a plain call lasts until the next.

    As a decorator it announces the phase during each call of the function; of a generator or a
    coroutine function it would only see the call that makes the object: use `with` inside those.
    """

    __slots__ = ("is_nested", "limit_s", "name", "since_ns", "thread")

    def __init__(self, name: str, limit_s: float | None) -> None:
        self.name = name
        self.limit_s = limit_s
        self.since_ns = time.monotonic_ns()
        self.thread = threading.get_ident()
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

    def __call__(self, function: F) -> F:
        marks.end(self)  # announced by the line of the decorator, where nothing runs yet

        @functools.wraps(function)
        def announced(*args: Any, **kwargs: Any) -> Any:
            with phase(self.name, self.limit_s):
                return function(*args, **kwargs)

        return announced  # type: ignore[return-value]  # wraps keeps the signature


class Marks:
    """The step, and the phases of each thread of this process, read by the probe's thread."""

    def __init__(self) -> None:
        self.step: int | None = None
        # A thread replaces its own tuple only, and a dict's items are set in one go: no lock.
        self._phases: dict[int, tuple[Phase, ...]] = {}

    def current(self) -> Phase | None:
        """The main thread's innermost phase, since others wait for that thread; else any other."""
        main = self._phases.get(threading.main_thread().ident or 0)
        stacks = [main] if main else list(self._phases.copy().values())
        return stacks[-1][-1] if stacks else None

    def begin(self, phase: Phase) -> None:
        # A phase that was announced by a plain call ends where the next one begins.
        kept = tuple(one for one in self._phases.get(phase.thread, ()) if one.is_nested)
        if kept or len(self._phases) < MAX_THREADS or phase.thread in self._phases:
            self._keep(phase.thread, (*kept, phase)[-MAX_DEPTH:])

    def end(self, phase: Phase | None) -> None:
        """End this phase and all inside it; None ends this thread's plainly called one."""
        thread = threading.get_ident() if phase is None else phase.thread
        phases = self._phases.get(thread, ())
        if phase is None:
            self._keep(thread, tuple(one for one in phases if one.is_nested))
        elif phase in phases:
            self._keep(thread, phases[: phases.index(phase)])

    def _keep(self, thread: int, phases: tuple[Phase, ...]) -> None:
        if phases:
            self._phases[thread] = phases
        else:
            self._phases.pop(thread, None)


marks = Marks()


def phase(name: str | None, limit_s: float | None = None) -> Phase:
    """Announce what the next stretch of work is: `with phase("checkpoint", limit_s=900): ...`.

    As a plain call it lasts until this thread's next phase; `phase(None)` or `phase("")` ends it.
    `limit_s` says for how long other ranks may wait for this one inside the phase, in seconds.
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
        known = int(number)
        if abs(known) <= MAX_STEP:
            marks.step = known


def _seconds(value: Any) -> float | None:
    """A positive finite number of seconds, else None: callers may pass anything."""
    try:
        seconds = float(value)
    except Exception:  # a caller's own __float__ may raise anything: then there is no limit
        return None
    return seconds if 0 < seconds < 1e9 else None
