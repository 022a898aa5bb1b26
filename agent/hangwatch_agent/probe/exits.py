"""The exit mark: how this process left, as far as Python itself knows.

A process that was killed leaves no mark. The code of sys.exit(n) is remembered where it is called;
if the main thread is still running its script a beat later, somebody caught it and it is forgotten.
`raise SystemExit` and os._exit pass by here; then code is 0 or there is no mark.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import sys
import threading
import time
from typing import Any, Callable


class Exits:
    """Chains sys.excepthook and sys.exit, and calls `write(code, exception)` at the end."""

    def __init__(self, write: Callable[[int | None, str], None], leave: Callable[[], None]) -> None:
        self._write = write
        self._leave = leave
        self._exception = ""
        self._code: int | None = 0
        self._exited_ns = 0

    def install(self) -> None:
        self._chain_hook()
        self._chain_exit()
        atexit.register(self._at_exit)

    def _chain_hook(self) -> None:
        previous = sys.excepthook

        @functools.wraps(previous)
        def excepthook(kind: Any, error: Any, trace: Any) -> None:
            self._code = 1
            self._exception = getattr(kind, "__name__", "")
            self._mark()
            previous(kind, error, trace)

        sys.excepthook = excepthook

    def _chain_exit(self) -> None:
        previous = sys.exit

        @functools.wraps(previous)
        def leave(*args: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                self._code = _code_of(args[0] if args else None)
                self._exited_ns = time.monotonic_ns()
            return previous(*args)

        sys.exit = leave

    def reconsider(self, now_ns: int) -> None:
        """Forget a remembered sys.exit that evidently was caught."""
        if not self._exited_ns or now_ns - self._exited_ns < 1_000_000_000:
            return
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame is not None and frame.f_back is not None:
            frame = frame.f_back
        if frame is not None and frame.f_code.co_name == "<module>":
            self._code, self._exited_ns = 0, 0

    def _at_exit(self) -> None:
        self._mark()
        # Boundary to the interpreter's shutdown: a missing last beat is allowed.
        with contextlib.suppress(Exception):
            self._leave()

    def _mark(self) -> None:
        try:
            self._write(self._code, self._exception)
        except Exception:  # boundary to the interpreter's shutdown: a missing mark is allowed
            self._code = None


def _code_of(value: Any) -> int:
    """What the process's exit code becomes for sys.exit(value)."""
    if value is None:
        return 0
    return value & 0xFF if isinstance(value, int) else 1
