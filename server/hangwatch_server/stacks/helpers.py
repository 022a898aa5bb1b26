"""Which thread or child process the main thread waits for, as far as stacks show it.

Python keeps no record of who holds a lock or will finish a future, so a thread is a guess: the one
that is at work in the same file, else one at work at all. Children are facts of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server import kernel_waits, outlines, process_states
from hangwatch_server.model import Activity
from hangwatch_server.stacks import frames, recognise, rules, signature

BUSY_SHARE = 0.05  # of a core
_HELPER = "helper"
_RUN = frozenset({"_bootstrap", "_worker_loop", "_wrap"})  # of a forked or spawned worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Helper:
    """A thread or process that others may wait for."""

    name: str  # "thread 'writer'", "its child process 831 (sh)"
    place: str = ""  # "at train.py:40 in flush, in D state in nfs_wait_bit"
    activity: Activity = Activity.UNKNOWN
    is_running: bool = False
    key: str = ""  # the signature of its stack

    @property
    def text(self) -> str:
        return f"{self.name} {self.place}".strip()


def thread(process: wire.ProcessStacks, waiting: wire.Thread) -> Helper | None:
    """The thread whose work `waiting` seems to need: of its own file, else any that is at work."""
    found = thread_in_file(process, waiting)
    if found is not None:
        return found
    others = [other for other in process.threads if other is not waiting]
    at_work = [helper for other in others if (helper := _at_work(other)) is not None]
    known = (helper for helper in at_work if helper.activity is not Activity.UNKNOWN)
    return next(known, at_work[0] if at_work else None)


def thread_in_file(process: wire.ProcessStacks, waiting: wire.Thread) -> Helper | None:
    """The thread that seems to hold the lock `waiting` waits for: it is at work in its file."""
    place = frames.user_frame(waiting.frames)
    if place is None:
        return None
    for other in process.threads:
        own = frames.user_frame(other.frames)
        if other is waiting or own is None or frames.is_framework(own):
            continue
        if own.file == place.file and not _is_idle(other):
            return _helper(other, _held_at(place, other.frames) or own)
    return None


def manages_children(process: wire.ProcessStacks) -> bool:
    """Whether a thread of it hands work to child processes, as the pools of Python do."""
    return any(
        frame.file.endswith(rules.CHILD_MANAGERS)
        for other in process.threads
        for frame in other.frames
    )


def child(part: wire.CapturePart) -> Helper | None:
    """The descendant where a rank that waits for a child truly waits, and its state in words.

    One in trouble (D state, stopped) before others, one deeper down before its parents.
    """
    known = part.process.children if part.process is not None else ()
    stacks = {process.pid: process for process in part.stacks if process.role != "main"}
    parents = {fact.parent for fact in known}
    leaves = [fact for fact in known if fact.role != _HELPER and fact.pid not in parents]
    if leaves:
        fact = min(leaves, key=lambda item: (item.state not in "DTt", item.pid not in stacks))
        return _of_child(fact, stacks.get(fact.pid))
    readable = [process for process in stacks.values() if process.threads]
    return _of_child(None, readable[-1]) if readable else None


def inside(process: wire.ProcessStacks) -> tuple[wire.Frame, ...]:
    """The frames of a child's main thread that are its own, innermost first.

    Outside the function that starts a worker lies the script that forked it.
    """
    main = outlines.main_thread(process)
    python = frames.python_only(main.frames) if main else ()
    for index, frame in enumerate(python):
        if frames.function(frame.name) in _RUN and frames.is_framework(frame):
            return python[:index]
    return python


def _of_child(fact: wire.ChildFacts | None, process: wire.ProcessStacks | None) -> Helper:
    main = outlines.main_thread(process) if process is not None else None
    own = inside(process) if process is not None else ()
    at = next((frame for frame in own if not frames.is_framework(frame)), None)
    at = at or next(iter(own), None)
    reading = recognise.known(own) if own else None
    pid = fact.pid if fact is not None else process.pid if process is not None else 0
    name = f" ({fact.name})" if fact is not None and at is None else ""
    return Helper(
        name=f"its child process {pid}{name}",
        place=_doing(fact, at),
        activity=_activity(fact, reading),
        is_running=_is_running(fact, main),
        key=signature.signature(main.frames) if main is not None else "",
    )


def _activity(fact: wire.ChildFacts | None, reading: recognise.Reading | None) -> Activity:
    if reading is not None:
        return reading.activity
    if fact is not None and fact.role == "compile":
        return Activity.COMPILE
    return Activity.UNKNOWN


def _doing(fact: wire.ChildFacts | None, at: wire.Frame | None) -> str:
    """`at pack.py:9 in write, in D state in nfs_wait_bit: it waits for the NFS server`."""
    clauses = [f"at {frames.where(at)}"] if at is not None else []
    if fact is not None:
        clauses += _state(fact, is_placed=at is not None)
    return ", ".join(clauses)


def _state(fact: wire.ChildFacts, *, is_placed: bool) -> list[str]:
    what = kernel_waits.words(fact.wchan)
    at = f" in {fact.wchan}" if fact.wchan not in ("", "0") else ""
    waits = f": it waits for {what}" if what else ""
    if fact.state == "D":
        return [f"in D state{at}{waits}"]
    if fact.state in process_states.STOPPED:
        return ["stopped by a signal"]
    if is_placed or fact.state == "R":
        return [f"waiting for {what}"] if what else []
    return [f"asleep{at}{waits}"]


def _is_running(fact: wire.ChildFacts | None, main: wire.Thread | None) -> bool:
    """The kernel's word comes first: py-spy guesses from the stack, which may be its parent's."""
    if fact is not None:
        return fact.state == "R" or (fact.cpu_share or 0.0) >= BUSY_SHARE
    return main is not None and main.is_active


def _at_work(other: wire.Thread) -> Helper | None:
    reading = recognise.known(other.frames)
    own = frames.user_frame(other.frames)
    if own is None or _is_idle(other):
        return None
    if reading is not None:
        return _helper(other, own, reading.activity)
    return None if frames.is_framework(own) else _helper(other, own)


def _helper(other: wire.Thread, at: wire.Frame, activity: Activity = Activity.UNKNOWN) -> Helper:
    return Helper(
        name=f"thread '{other.name}'" if other.name else "a thread",
        place=f"at {frames.where(at)}",
        activity=activity,
        is_running=other.is_active,
        key=signature.signature(other.frames),
    )


def _held_at(place: wire.Frame, stack: Sequence[wire.Frame]) -> wire.Frame | None:
    """The innermost frame of the same class as `place`: there a lock of that class is taken."""
    owner, _, _ = place.name.rpartition(".")
    if not owner:
        return None
    own = (frame for frame in frames.python_only(stack) if frame.file == place.file)
    return next((frame for frame in own if frame.name.rpartition(".")[0] == owner), None)


def _is_idle(other: wire.Thread) -> bool:
    """Whether it only waits for another thread itself."""
    for frame in frames.python_only(other.frames):
        if not frames.is_framework(frame):
            return False
        if rules.is_lock_function(frame.file, frames.function(frame.name)):
            return True
    return False
