"""What the captures of one rank's process say so far, as `StackFacts`: the newest stack, and
since when it stands still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hangwatch_agent import wire
from hangwatch_server import outlines
from hangwatch_server.model import Activity, StackFacts
from hangwatch_server.stacks import activity, frames, helpers, signature
from hangwatch_server.stacks.recognise import Reading

_BACKWARD = frozenset({"backward", "_engine_run_backward", "apply_backward"})
_DDP = "torch/nn/parallel/distributed"
_SHOWN_WORKERS = 2
_WAITED_FOR = 0  # no process has this pid
_OF_CHILD = frozenset({Activity.CHECKPOINT, Activity.COMPILE, Activity.MODEL_LOADING})


@dataclass(frozen=True, slots=True)
class Sample:
    """One capture's part of a rank's process; `taken_s` is by the server's monotonic clock."""

    part: wire.CapturePart
    taken_s: float  # the age that the agent measured is taken off
    capture: str
    is_kept: bool = True  # False: an agent's own look, stored nowhere


@dataclass(frozen=True, slots=True)
class _View:
    """A sample that has a main thread."""

    sample: Sample
    process: wire.ProcessStacks
    thread: wire.Thread
    reading: Reading
    keys: Mapping[int, str]  # pid -> signature of its main thread; 0: of the thread waited for


def facts(samples: Sequence[Sample], now_s: float) -> StackFacts | None:
    """Facts of the newest process among `samples`, newest last; None when none has a stack."""
    views = [view for view in map(_view, samples) if view is not None]
    if not views:
        return None
    newest = views[-1]
    run = _still_since(views)
    reading = newest.reading
    python = frames.python_only(newest.thread.frames)
    names = {frames.function(frame.name) for frame in python}
    is_in_backward = bool(names & _BACKWARD)
    return StackFacts(
        pid=newest.sample.part.pid,
        age_s=max(0.0, now_s - newest.sample.taken_s),
        where=frames.where(frames.user_frame(newest.thread.frames)),
        leaf=frames.where(next(iter(python or newest.thread.frames), None)),
        activity=reading.activity,
        op=reading.op,
        detail=_detail(newest, reading),
        user_path=tuple(frame for frame in reversed(python) if not frames.is_framework(frame)),
        is_in_backward=is_in_backward,
        is_in_forward=not is_in_backward and any(_DDP in frame.file for frame in python),
        is_in_join=any("torch/distributed/algorithms/join" in frame.file for frame in python),
        same_leaf_captures=len(run),
        same_leaf_s=newest.sample.taken_s - run[0].sample.taken_s,
        capture=newest.sample.capture,
        is_kept=newest.sample.is_kept,
        lock_holder=reading.lock_holder,
        gil_holder=_gil_holder(run),
        waits_on=reading.waits_on,
        is_served=reading.is_served,
        is_opaque=reading.is_opaque,
        signature=signature.signature(newest.thread.frames),
    )


def superfluous(samples: Sequence[Sample]) -> int:
    """The index of the sample that says least, where one must go: the oldest, as a rule.

    The oldest of a run that still lasts tells since when it does, so then the one after it goes.
    """
    first, second = (_view(sample) for sample in samples[:2])
    is_run = first is not None and second is not None and _is_same(first.keys, second.keys)
    return 1 if is_run else 0


def _view(sample: Sample) -> _View | None:
    process = frames.main_process(sample.part.stacks)
    thread = outlines.main_thread(process) if process else None
    if process is None or thread is None or not thread.frames:
        return None
    reading = _reading(sample.part, process, thread)
    return _View(
        sample, process, thread, reading, _keys(sample.part.stacks, process, thread, reading)
    )


def _reading(part: wire.CapturePart, process: wire.ProcessStacks, thread: wire.Thread) -> Reading:
    """What the main thread does; where it waits for a child, what the child does."""
    reading = activity.read(process, thread, part.process.wchan if part.process else "")
    helper = helpers.child(part) if reading.waits_on == "child" else None
    if helper is None:
        return reading
    return replace(
        reading,
        activity=helper.activity if helper.activity in _OF_CHILD else reading.activity,
        detail=f"waits for {helper.text}",
        is_served=helper.is_running,
    )


def _keys(
    stacks: Sequence[wire.ProcessStacks],
    process: wire.ProcessStacks,
    thread: wire.Thread,
    reading: Reading,
) -> dict[int, str]:
    threads = ((process.pid, outlines.main_thread(process)) for process in stacks)
    keys = {pid: signature.signature(thread.frames) for pid, thread in threads if thread}
    helper = helpers.thread(process, thread) if reading.waits_on == "thread" else None
    return {**keys, _WAITED_FOR: helper.key} if helper is not None else keys


def _still_since(views: Sequence[_View]) -> list[_View]:
    """The newest views in a row, oldest first, in which process and children stand still."""
    run = [views[-1]]
    for view in reversed(views[:-1]):
        if view.sample.part.pid != run[0].sample.part.pid or not _is_same(view.keys, run[0].keys):
            break
        run.insert(0, view)
    return run


def _gil_holder(run: Sequence[_View]) -> str:
    """The thread that owned the interpreter lock, asleep at one place, in the last two looks.

    Python gives the lock back before it sleeps; native code may not. One that runs may just work.
    """
    if len(run) < 2:
        return ""
    (before, now) = (_sleeping_owner(view.process) for view in run[-2:])
    if before is None or now is None or before.thread_id != now.thread_id:
        return ""
    if signature.signature(before.frames) != signature.signature(now.frames):
        return ""
    if now is run[-1].thread:
        return "its main thread"
    name = f"thread '{now.name}'" if now.name else "a thread"
    return f"{name} at {frames.where(frames.user_frame(now.frames))}"


def _sleeping_owner(process: wire.ProcessStacks) -> wire.Thread | None:
    owners = (thread for thread in process.threads if thread.owns_gil and not thread.is_active)
    return next(owners, None)


def _is_same(one: Mapping[int, str], other: Mapping[int, str]) -> bool:
    """Children that only one capture has say nothing: a capture may leave some out."""
    return all(one[pid] == other[pid] for pid in one.keys() & other.keys())


def _detail(view: _View, reading: Reading) -> str:
    if reading.activity is not Activity.DATALOADER:
        return reading.detail
    busy = [text for text in map(_worker, view.sample.part.stacks) if text]
    if busy:
        return "its loader " + " and ".join(busy[:_SHOWN_WORKERS])
    if any(process.role == "loader" for process in view.sample.part.stacks):
        return "waits for a batch from its loader workers"
    return ""


def _worker(process: wire.ProcessStacks) -> str:
    """`worker 831 is at train.py:88 in __getitem__`; "" for an idle worker and other children."""
    thread = outlines.main_thread(process) if process.role == "loader" else None
    inside = helpers.inside(process) if thread else ()
    own = next((frame for frame in inside if not frames.is_framework(frame)), None)
    return f"worker {process.pid} is at {frames.where(own)}" if own else ""
