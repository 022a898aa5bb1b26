"""What one process does, judged from the stack of its main thread and, for locks, its other
threads.

It does not know whether the stack moves; `facts` compares captures. Which child process the main
thread waits for is told by `helpers`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hangwatch_agent import wire
from hangwatch_server import kernel_waits
from hangwatch_server.model import Activity
from hangwatch_server.stacks import frames as frame_text
from hangwatch_server.stacks import helpers, recognise, rules
from hangwatch_server.stacks.recognise import Reading

_ENGINE = "_engine_run_backward"
_IS_PHASE = frozenset({Activity.CHECKPOINT, Activity.COMPILE, Activity.MODEL_LOADING})


def read(process: wire.ProcessStacks, thread: wire.Thread, wchan: str = "") -> Reading:
    """Classify the main thread of `process`; `wchan` is where the kernel has it wait, or ""."""
    reading = recognise.known(thread.frames) or _backward(thread) or _native(thread.frames)
    if reading is not None and reading.activity is not Activity.LOCK:
        return reading
    waits_on = _waits_on(process, thread, wchan)
    if waits_on == "child":
        is_lock = _is_in_lock_function(thread.frames)
        return Reading(
            activity=Activity.LOCK if is_lock else Activity.USER_CODE,
            detail="waits for a child process",
            waits_on=waits_on,
        )
    if reading is not None or waits_on == "thread":
        return _of_thread(process, thread)
    if not frame_text.python_only(thread.frames):
        return Reading(activity=Activity.UNKNOWN)
    return _user_code(process, thread, wchan)


def _waits_on(process: wire.ProcessStacks, thread: wire.Thread, wchan: str) -> str:
    """Whom the standard library's code inside the user's innermost frame waits for."""
    python = frame_text.python_only(thread.frames)
    inside: list[tuple[str, str]] = []
    for frame in python:
        if not frame_text.is_framework(frame):
            break
        inside.append((frame.file, frame_text.function(frame.name)))
    if any(rules.waits_for_child(*place) for place in inside):
        return "child"
    if any(rules.is_lock_function(*place) for place in inside):
        return "child" if helpers.manages_children(process) else "thread"
    is_own_leaf = bool(python) and not inside
    return "child" if is_own_leaf and kernel_waits.words(wchan) == "a child process" else ""


def _of_thread(process: wire.ProcessStacks, thread: wire.Thread) -> Reading:
    """A wait for another thread; one that writes a checkpoint, say, makes it a checkpoint."""
    helper = helpers.thread(process, thread)
    if helper is None:
        return Reading(activity=Activity.LOCK, detail="waits for another thread", waits_on="thread")
    is_phase = helper.activity in _IS_PHASE
    return Reading(
        activity=helper.activity if is_phase else Activity.LOCK,
        detail=_held_by(helper) if _takes_lock(thread) else f"seems to wait for {helper.text}",
        lock_holder=helper.text,
        waits_on="thread",
        is_served=helper.is_running,
    )


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


def _user_code(process: wire.ProcessStacks, thread: wire.Thread, wchan: str) -> Reading:
    """User code, or a lock: of a bare `with lock:` only the other thread in the file is a sign."""
    python = frame_text.python_only(thread.frames)
    waited_for = kernel_waits.words(wchan)
    is_own_leaf = not frame_text.is_framework(python[0])
    if waited_for == kernel_waits.FILE_LOCK and is_own_leaf and not thread.is_active:
        return Reading(activity=Activity.LOCK, detail=f"waits for {waited_for}")
    may_wait = is_own_leaf and not thread.is_active and not _is_elsewhere(wchan)
    holder = helpers.thread_in_file(process, thread) if may_wait else None
    if holder is not None:
        return Reading(
            activity=Activity.LOCK,
            detail=_held_by(holder),
            lock_holder=holder.text,
            waits_on="thread",
            is_served=holder.is_running,
        )
    if may_wait and "futex" in wchan:
        detail = "waits for a lock or an asynchronous call"
    else:
        detail = f"waits for {waited_for}" if waited_for and not thread.is_active else ""
    is_lock = waited_for == "a file lock" and not thread.is_active
    activity = Activity.LOCK if is_lock else Activity.USER_CODE
    return Reading(activity=activity, detail=detail, is_opaque=may_wait)


def _held_by(holder: helpers.Helper) -> str:
    return f"{holder.name} seems to hold it {holder.place}"


def _takes_lock(thread: wire.Thread) -> bool:
    """Whether it takes a lock itself, rather than waits for a result or a signal."""
    python = frame_text.python_only(thread.frames)
    return bool(python) and frame_text.function(python[0].name) in ("acquire", "__enter__")


def _is_elsewhere(wchan: str) -> bool:
    """Whether the kernel has it wait for something else than a futex; "" and 0 tell nothing."""
    return wchan not in ("", "0") and "futex" not in wchan
