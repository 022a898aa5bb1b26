"""Whether a rank works or is frozen, from CPU, I/O, children, GPU and its stack over some seconds.

Without stacks the same is judged from the rest alone, over a longer time. On a crowded machine the
kernel's own account decides: a thread that wants to run and may not is no frozen one. "Cannot tell"
is an answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from hangwatch_server import process_states
from hangwatch_server.detect import children, gpu, phases, progress
from hangwatch_server.detect.memory import Stall, Trace
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, RankView, Snapshot

_MAX_TRACES = 64
# Inside these nobody works: their threads spin or poll while they wait.
_SPINNING = frozenset({Activity.COLLECTIVE, Activity.GPU, Activity.RENDEZVOUS})


class Motion(StrEnum):
    WORKING = "working"
    FROZEN = "frozen"
    UNDECIDED = "undecided"


def observe(stall: Stall, snapshot: Snapshot, ranks: Iterable[int], s: DetectSettings) -> Stall:
    """The stall with one more trace of each of these ranks; other ranks' traces are dropped."""
    traces: dict[int, tuple[Trace, ...]] = {}
    for rank in ranks:
        view = snapshot.ranks.get(rank)
        if view is not None and view.beat is not None:
            trace = _trace(view, stall, snapshot.taken_s, s)
            traces[rank] = (*stall.traces.get(rank, ()), trace)[-_MAX_TRACES:]
    return replace(stall, traces=traces)


def _trace(view: RankView, stall: Stall, now_s: float, s: DetectSettings) -> Trace:
    assert view.beat is not None  # observe() looked
    process, stack = view.beat.process, view.stack
    captured_s = now_s - stack.age_s if stack else 0.0
    is_of_stall = stack is not None and captured_s >= stall.origin_s
    return Trace(
        at_s=now_s - view.age_s,
        io_bytes=process.io_bytes,
        main_cpu_s=process.main_cpu_s,
        cpu_s=process.cpu_s,
        is_stopped=process_states.is_stopped(process),
        moving_children=children.moving(process, s),
        capture=stack.capture if stack and is_of_stall else "",
        captured_s=captured_s if is_of_stall else 0.0,
    )


def motion(view: RankView, stall: Stall, now_s: float, s: DetectSettings) -> Motion:
    """Judge one rank: an ended process at once, one that is stopped once that is no mere look at
    it, one never heard not at all."""
    traces = stall.traces.get(view.rank, ())
    if view.beat is not None and process_states.has_ended(view.beat.process):
        return Motion.FROZEN
    if view.beat is None or not traces:
        return Motion.UNDECIDED
    if view.beat.process.state in process_states.STOPPED:
        return Motion.FROZEN if _stays_stopped(traces, s) else Motion.UNDECIDED
    if _works(view, traces, s) or phases.goes_on_elsewhere(view, now_s - stall.origin_s, s):
        return Motion.WORKING
    if _leaf_moves(view, traces):
        return Motion.WORKING
    if children.work_elsewhere(view):
        return Motion.UNDECIDED
    if view.stack is None or not traces[-1].capture or children.are_hidden(view):
        quiet_s = traces[-1].at_s - max(traces[0].at_s, stall.origin_s)
        return Motion.FROZEN if quiet_s >= s.blind_frozen_s else Motion.UNDECIDED
    is_still = _leaf_stands(view, traces, s) or _never_ran(view, s)
    return Motion.FROZEN if is_still else Motion.UNDECIDED


def has_stopped(view: RankView, stall: Stall, s: DetectSettings) -> bool:
    """Whether its process has ended, or is stopped and stays so."""
    if view.beat is None:
        return False
    traces = stall.traces.get(view.rank, ())
    is_stopped = view.beat.process.state in process_states.STOPPED and _stays_stopped(traces, s)
    return is_stopped or process_states.has_ended(view.beat.process)


def _stays_stopped(traces: tuple[Trace, ...], s: DetectSettings) -> bool:
    """Stopped in every trace over some seconds: a tracer's look at a process is shorter."""
    stopped = list(itertools.takewhile(lambda trace: trace.is_stopped, reversed(traces)))
    return bool(stopped) and stopped[0].at_s - stopped[-1].at_s >= s.hard_apart_s


def waits_for_storage(view: RankView) -> bool:
    """Whether the rank, or a child that it waits for, is in D state on some storage."""
    if view.beat is None:
        return False
    process = view.beat.process
    if process.state == "D":
        return children.is_storage(process.wchan)
    return children.wait_for_storage(view)


def _works(view: RankView, traces: tuple[Trace, ...], s: DetectSettings) -> bool:
    assert view.beat is not None  # motion() looked
    process = view.beat.process
    # Waiting for the GPU inside a collective spins at full speed: that is no work.
    is_waiting = view.stack is not None and view.stack.activity in _SPINNING
    if not is_waiting:
        main_share = _cpu_share(view, traces) or 0.0
        wanted = main_share + (process.main_delay_share or 0.0)  # a crowded machine lets it wait
        if main_share >= s.working_cpu_share or wanted >= s.wanted_cpu_share:
            return True
        if _threads_work(view, traces, main_share, s):
            return True
    if view.stack is not None and view.stack.is_served:
        return True
    if children.serve(view, _moving_children(traces, s)):
        return True
    return _io_rate(traces) >= s.moving_io_bytes_per_s or gpu.works(view, s)


def _moving_children(traces: tuple[Trace, ...], s: DetectSettings) -> frozenset[str]:
    """The roles of all that moved within the window: work comes in bursts, with waits between."""
    since_s = traces[-1].at_s - s.frozen_window_s
    return frozenset().union(*(item.moving_children for item in traces if item.at_s > since_s))


def _threads_work(
    view: RankView, traces: tuple[Trace, ...], main_share: float, s: DetectSettings
) -> bool:
    """Whether other threads are at work that the main thread may wait for.

    A thread that holds the interpreter lock for seconds is the trouble itself, not help.
    """
    assert view.beat is not None  # motion() looked
    if view.beat.process.is_gil_held:
        return False
    first, last = _recent(traces)
    if last.at_s <= first.at_s:
        return False
    all_share = (last.cpu_s - first.cpu_s) / (last.at_s - first.at_s)
    return all_share - main_share >= s.working_threads_share


def _cpu_share(view: RankView, traces: tuple[Trace, ...]) -> float | None:
    """The agent's own share, else from the main thread's CPU time between two traces."""
    assert view.beat is not None  # motion() looked
    if view.beat.process.main_cpu_share is not None:
        return view.beat.process.main_cpu_share
    first, last = _recent(traces)
    if last.at_s <= first.at_s:
        return None
    return (last.main_cpu_s - first.main_cpu_s) / (last.at_s - first.at_s)


def _io_rate(traces: tuple[Trace, ...]) -> float:
    first, last = _recent(traces)
    if first.io_bytes is None or last.io_bytes is None or last.at_s <= first.at_s:
        return 0.0
    return (last.io_bytes - first.io_bytes) / (last.at_s - first.at_s)


def _recent(traces: tuple[Trace, ...], window_s: float = 6.0) -> tuple[Trace, Trace]:
    """The newest trace, and the newest that is a window older: across a gap in sight too."""
    last = traces[-1]
    before = (trace for trace in reversed(traces) if trace.at_s <= last.at_s - window_s)
    return next(before, traces[0]), last


def _captured(traces: tuple[Trace, ...]) -> dict[str, float]:
    """The captures of this stall, oldest first, with the time each was first known to be taken."""
    captured: dict[str, float] = {}
    for trace in traces:
        if trace.capture:
            captured.setdefault(trace.capture, trace.captured_s)
    return captured


def _leaf_moves(view: RankView, traces: tuple[Trace, ...]) -> bool:
    """Two captures of this stall, and the newest stack differs from the one before it."""
    return (
        len(_captured(traces)) >= 2
        and view.stack is not None
        and view.stack.same_leaf_captures == 1
    )


def _leaf_stands(view: RankView, traces: tuple[Trace, ...], s: DetectSettings) -> bool:
    """Enough captures of *this* stall, not of one before it, have the same stack."""
    stack = view.stack
    captured = list(_captured(traces).values())
    if stack is None or len(captured) < s.frozen_captures:
        return False
    span_s = min(stack.same_leaf_s, captured[-1] - captured[0])
    return (
        stack.same_leaf_captures >= s.frozen_captures
        and span_s >= s.frozen_window_s - s.frozen_slack_s
    )


def _never_ran(view: RankView, s: DetectSettings) -> bool:
    """The kernel says so itself: captures may come late where the machine is overloaded."""
    assert view.beat is not None  # motion() looked
    still_s = progress.kernel_still_s(view.beat.process)
    return still_s is not None and still_s >= s.frozen_window_s
