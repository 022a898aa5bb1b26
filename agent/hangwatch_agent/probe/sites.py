"""Where in the user's code each collective was called, for `hangwatch run --call-sites`.

The methods of ProcessGroup that start a collective are wrapped, and at their entry the nearest
frame outside of torch is noted with the number that the call gets: code object and line, no text
and no stack, about 4 microseconds. Calls issued from C++ (DDP's gradients) do not pass here. It is
off unless HANGWATCH_CALL_SITES asks for it.
"""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType
from typing import Any, Callable, Iterable, Optional

from . import counters, dynamo, groups

VARIABLE = "HANGWATCH_CALL_SITES"
METHODS = (
    "allreduce",
    "allreduce_coalesced",
    "allgather",
    "_allgather_base",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced",
    "alltoall",
    "alltoall_base",
    "barrier",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
)
MAX_DEPTH = 40  # frames that are looked at
MAX_FILES = 10_000
_PROBE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Noted:
    """One call: its number on the group (corrected once it is known) and its place."""

    __slots__ = ("place", "seq")

    def __init__(self, seq: int, place: Any) -> None:
        self.seq = seq
        self.place = place


class Sites:
    """The wrappers; what they note is kept at each group."""

    def __init__(self, table: Callable[[], groups.Table]) -> None:
        self._table = table
        self._originals: dict[str, Any] = {}
        self._class: Any = None
        self._is_users: dict[str, bool] = {}  # by file; code objects of two files can be equal
        self._torch_folder = ""

    def install(self) -> None:
        """Wrap the methods that this torch has. Goes under the wrappers of `calls`."""
        torch = sys.modules.get("torch")
        self._torch_folder = os.path.dirname(str(getattr(torch, "__file__", ""))) + os.sep
        self._class = getattr(sys.modules.get(counters.BINDINGS), "ProcessGroup", None)
        for name in METHODS:
            original = getattr(self._class, name, None)
            if original is not None:
                self._originals[name] = original
                setattr(self._class, name, self._noting(original))

    def remove(self) -> None:
        for name, original in self._originals.items():
            setattr(self._class, name, original)
        self._originals.clear()

    def _noting(self, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def noted(process_group: Any, *args: Any, **kwargs: Any) -> Any:
            note = self._enter(process_group, sys._getframe(1))
            result = original(process_group, *args, **kwargs)
            if note is not None:
                _settle(process_group, *note)
            return result

        dynamo.keep_out(noted)
        return noted

    def _enter(self, process_group: Any, caller: FrameType) -> Optional[tuple[groups.Group, Noted]]:
        try:
            group = self._table().of(process_group)
            raw = counters.raw_of(process_group)
            place = self.place(caller)
            if group is None or raw is None or place is None:
                return None
            noted = Noted(raw + group.offset + 1, place)
            group.sites.append(noted)
            return group, noted
        except Exception:  # boundary to the trainer: the call goes on without its place
            return None

    def place(self, caller: FrameType) -> Any:
        """(code, line) of the nearest frame that is the user's own, or None."""
        frame: Optional[FrameType] = caller
        for _ in range(MAX_DEPTH):
            if frame is None:
                return None
            name = frame.f_code.co_filename
            is_users = self._is_users.get(name)
            if is_users is None:
                is_users = self._look_at(name)
            if is_users:
                return frame.f_code, frame.f_lineno
            frame = frame.f_back
        return None

    def _look_at(self, name: str) -> bool:
        found = not name.startswith((self._torch_folder, _PROBE_FOLDER, "<"))
        found = found and not name.endswith("contextlib.py")
        if len(self._is_users) < MAX_FILES:
            self._is_users[name] = found
        return found


def is_wanted() -> bool:
    return os.environ.get(VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


def text(place: Any) -> str:
    """ "train.py:88 in step"."""
    code, line = place
    return f"{os.path.basename(code.co_filename)}:{line} in {code.co_name}"[:200]


def attach(entries: list[dict[str, Any]], noted: Iterable[Noted]) -> None:
    """Give each entry the place of the call with its number, where one was noted."""
    by_seq = {one.seq: one.place for one in list(noted)}
    for entry in entries:
        place = by_seq.get(entry["seq"])
        if place is not None:
            entry["site"] = text(place)


def _settle(process_group: Any, group: groups.Group, noted: Noted) -> None:
    """Correct the number by what the counter says after the call."""
    try:
        raw = counters.raw_of(process_group)
        if raw is not None:
            noted.seq = raw + group.offset
    except Exception:  # boundary to the trainer: the guess stays
        return
