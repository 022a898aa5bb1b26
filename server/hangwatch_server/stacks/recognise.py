"""The first rule that a stack meets, from the innermost frame outwards: what is inside runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server.model import Activity
from hangwatch_server.stacks import frames as frame_text
from hangwatch_server.stacks import rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The activity of one stack and what supports it."""

    activity: Activity
    op: str = ""
    detail: str = ""
    lock_holder: str = ""
    waits_on: str = ""  # "child" or "thread"
    is_served: bool = False
    is_opaque: bool = False


def known(frames: Sequence[wire.Frame]) -> Reading | None:
    """The first rule that a frame meets, innermost first."""
    has_user_inside = False
    python = frame_text.python_only(frames)
    for index, frame in enumerate(python):
        activity = _of_frame(frame, has_user_inside)
        if activity is Activity.COLLECTIVE:
            return _collective(python, index)
        if activity is Activity.RENDEZVOUS:
            return Reading(activity=activity, op=_rendezvous(python, index))
        if activity is not None:
            return Reading(activity=activity)
        has_user_inside = has_user_inside or not frame_text.is_framework(frame)
    return None


def _rendezvous(python: Sequence[wire.Frame], index: int) -> str:
    """The call that the user wrote: init_process_group, new_group or one of its like."""
    name = ""
    for frame in python[index:]:
        if not frame_text.is_framework(frame):
            break
        called = frame_text.function(frame.name)
        name = called if called in rules.RENDEZVOUS else name
    return name


def _of_frame(frame: wire.Frame, has_user_inside: bool) -> Activity | None:
    name = frame_text.function(frame.name)
    if not frame_text.is_framework(frame):
        return rules.of_user_function(name)
    for rule in rules.FRAMEWORK_RULES:
        if (rule.is_outer or not has_user_inside) and rule.matches(frame.file, name):
            return rule.activity
    return rules.of_trainer(frame.file, name)


def _collective(python: Sequence[wire.Frame], index: int) -> Reading:
    """`op` is the innermost call, as the recorder names it; `detail` the one the user wrote."""
    op = frame_text.function(python[index].name)
    written = op
    for frame in python[index + 1 :]:
        if not frame_text.is_framework(frame):
            break
        name = frame_text.function(frame.name)
        written = name if name in rules.OPS else written
    op = "broadcast" if op.startswith(("_sync", "_broadcast", "_distributed")) else op
    detail = f"inside {written}" if written != op else ""
    return Reading(activity=Activity.COLLECTIVE, op=op, detail=detail)
