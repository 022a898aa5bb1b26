"""Tells, on the caller's own thread, that init_process_group has just made the default group.

A rank that takes the GIL right after it, and keeps it, would otherwise be gone before the probe's
thread has its first turn. torch tells its own bindings the global rank at that moment, through
`_set_global_rank`; a torch without it loses nothing but this one early beat.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from . import counters

NAME = "_set_global_rank"


class Arrival:
    """Wraps one private function of torch's bindings; `action` must not raise."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._original: Any = None

    def install(self) -> None:
        bindings = sys.modules.get(counters.BINDINGS)
        original = getattr(bindings, NAME, None)
        if original is None:
            return

        @functools.wraps(original)
        def arrived(rank: int, *args: Any, **kwargs: Any) -> Any:
            result = original(rank, *args, **kwargs)
            if rank >= 0:  # it is -1 when the group is destroyed
                self._action()
            return result

        self._original = original
        setattr(bindings, NAME, arrived)

    def remove(self) -> None:
        if self._original is not None:
            setattr(sys.modules[counters.BINDINGS], NAME, self._original)
            self._original = None
