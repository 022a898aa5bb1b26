"""What one process does, judged from the stack of its main thread and, for locks, its other
threads.

It walks from the innermost frame outwards: the first frame that a rule knows decides, since what is
furthest in is what runs. It does not know whether the stack moves; `facts` compares captures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server.model import Activity
from hangwatch_server.stacks import frames as frame_text
from hangwatch_server.stacks import rules

_ENGINE = "_engine_run_backward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The activity of one stack and what supports it."""

    activity: Activity
    op: str = ""
    detail: str = ""
    lock_holder: str = ""


def read(process: wire.ProcessStacks, thread: wire.Thread, wchan: str = "") -> Reading:
    """Classify the main thread of `process`; `wchan` is where the kernel has it wait, or ""."""
    reading = _known(thread.frames) or _backward(thread) or _native(thread.frames)
    if reading is not None and reading.activity is not Activity.LOCK:
        return reading
    holder = lock_holder(process, thread)
    if reading is not None or _is_in_lock_function(thread.frames):
        return Reading(
            activity=Activity.LOCK, detail="waits for another thread", lock_holder=holder
        )
    if not frame_text.python_only(thread.frames):
        return Reading(activity=Activity.UNKNOWN)
    return _user_code(thread, wchan, holder)


def _known(frames: Sequence[wire.Frame]) -> Reading | None:
    """The first rule that a frame meets, innermost first."""
    has_user_inside = False
    python = frame_text.python_only(frames)
    for index, frame in enumerate(python):
        activity = _of_frame(frame, has_user_inside)
        if activity is Activity.COLLECTIVE:
            return _collective(python, index)
        if activity is not None:
            return Reading(activity=activity)
        has_user_inside = has_user_inside or not frame_text.is_framework(frame)
    return None


def _of_frame(frame: wire.Frame, has_user_inside: bool) -> Activity | None:
    name = frame_text.function(frame.name)
    if not frame_text.is_framework(frame):
        return rules.of_user_function(name)
    for rule in rules.FRAMEWORK_RULES:
        if (rule.is_outer or not has_user_inside) and rule.matches(frame.file, name):
            return rule.activity
    return None


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


def _backward(thread: wire.Thread) -> Reading | None:
    """An engine that idles without Python inside waits for DistributedDataParallel's all_reduce.

    That one is issued in C++, and so has no frame of its own.
    """
    python = frame_text.python_only(thread.frames)
    if not python or frame_text.function(python[0].name) != _ENGINE or thread.is_active:
        return None
    return Reading(
        activity=Activity.COLLECTIVE, op="all_reduce", detail="waits inside backward for gradients"
    )


def _native(frames: Sequence[wire.Frame]) -> Reading | None:
    """What native frames, where taken, say of the code inside the innermost Python frame."""
    for frame in frames:
        if not frame.is_native:
            return None
        activity = rules.of_native(frame.name)
        if activity is not None:
            return Reading(activity=activity, op="")
    return None


def _is_in_lock_function(frames: Sequence[wire.Frame]) -> bool:
    """Whether standard-library waiting code is all that lies inside the user's innermost frame."""
    for frame in frame_text.python_only(frames):
        if not frame_text.is_framework(frame):
            return False
        if rules.is_lock_function(frame.file, frame_text.function(frame.name)):
            return True
    return False


def _user_code(thread: wire.Thread, wchan: str, holder: str) -> Reading:
    """User code, or a lock: of a bare `with lock:` only the other thread in the file is a sign."""
    python = frame_text.python_only(thread.frames)
    is_own_leaf = not frame_text.is_framework(python[0])
    may_wait = is_own_leaf and not thread.is_active and not _is_elsewhere(wchan)
    if may_wait and holder:
        return Reading(
            activity=Activity.LOCK, detail="seems to wait for a lock", lock_holder=holder
        )
    detail = "waits for a lock or an asynchronous call" if may_wait and "futex" in wchan else ""
    return Reading(activity=Activity.USER_CODE, detail=detail)


def _is_elsewhere(wchan: str) -> bool:
    """Whether the kernel has it wait for something else than a futex; "" and 0 tell nothing."""
    return wchan not in ("", "0") and "futex" not in wchan


def lock_holder(process: wire.ProcessStacks, waiting: wire.Thread) -> str:
    """The thread in the same file that seems to hold what `waiting` waits for, else "".

    A guess from Python frames alone: `refresher at cache.py:41 in refresh`.
    """
    place = frame_text.user_frame(waiting.frames)
    if place is None:
        return ""
    for thread in process.threads:
        own = frame_text.user_frame(thread.frames)
        if thread is waiting or own is None or frame_text.is_framework(own):
            continue
        if own.file == place.file and not _is_in_lock_function(thread.frames):
            return f"{thread.name or 'a thread'} at {frame_text.where(own)}"
    return ""
