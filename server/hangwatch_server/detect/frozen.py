"""Whether a rank works or is frozen, from CPU, I/O, children, GPU and its stack over some seconds.

Without stacks the same is judged from the rest alone, over a longer time. "Cannot tell" is an
answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from hangwatch_server.detect.memory import Stall, Trace
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, RankView, Snapshot

_MAX_TRACES = 64
# Helpers of the user's own (loggers, metric writers) are busy whether or not the rank is stuck.
_STILL = frozenset({"T", "t", "Z", "X", "gone"})
_WORKING_ROLES = frozenset({"loader", "compile", "checkpoint"})


class Motion(StrEnum):
    WORKING = "working"
    FROZEN = "frozen"
    UNDECIDED = "undecided"


def observe(stall: Stall, snapshot: Snapshot, ranks: Iterable[int]) -> Stall:
    """The stall with one more trace of each of these ranks; other ranks' traces are dropped."""
    traces: dict[int, tuple[Trace, ...]] = {}
    for rank in ranks:
        view = snapshot.ranks.get(rank)
        if view is not None and view.beat is not None:
            trace = _trace(view, stall, snapshot.taken_s)
            traces[rank] = (*stall.traces.get(rank, ()), trace)[-_MAX_TRACES:]
    return replace(stall, traces=traces)


def _trace(view: RankView, stall: Stall, now_s: float) -> Trace:
    assert view.beat is not None  # observe() looked
    process, stack = view.beat.process, view.stack
    captured_s = now_s - stack.age_s if stack else 0.0
    is_of_stall = stack is not None and captured_s >= stall.origin_s
    return Trace(
        at_s=now_s - view.age_s,
        io_bytes=process.io_bytes,
        main_cpu_s=process.main_cpu_s,
        capture=stack.capture if stack and is_of_stall else "",
        captured_s=captured_s if is_of_stall else 0.0,
    )


def motion(view: RankView, stall: Stall, now_s: float, s: DetectSettings) -> Motion:
    """Judge one rank: a stopped or ended process at once, one never heard not at all."""
    traces = stall.traces.get(view.rank, ())
    if view.beat is not None and view.beat.process.state in _STILL:
        return Motion.FROZEN
    if view.beat is None or not traces:
        return Motion.UNDECIDED
    if _works(view, traces, s) or _leaf_moves(view, traces):
        return Motion.WORKING
    if view.stack is None or not traces[-1].capture:
        quiet_s = traces[-1].at_s - max(traces[0].at_s, stall.origin_s)
        return Motion.FROZEN if quiet_s >= s.blind_frozen_s else Motion.UNDECIDED
    return Motion.FROZEN if _leaf_stands(view, traces, s) else Motion.UNDECIDED


def _works(view: RankView, traces: tuple[Trace, ...], s: DetectSettings) -> bool:
    assert view.beat is not None  # motion() looked
    process = view.beat.process
    # Waiting for the GPU inside a collective spins at full speed: that is no work.
    is_waiting = view.stack is not None and view.stack.activity is Activity.COLLECTIVE
    if not is_waiting and (_cpu_share(view, traces) or 0.0) >= s.working_cpu_share:
        return True
    busy = (c for c in process.children if c.role in _WORKING_ROLES and c.cpu_share is not None)
    if any((child.cpu_share or 0.0) >= s.working_cpu_share for child in busy):
        return True
    return _io_rate(traces) >= s.moving_io_bytes_per_s or _gpu_works(view, s)


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
    last = traces[-1]
    return next(trace for trace in traces if trace.at_s >= last.at_s - window_s), last


def _gpu_works(view: RankView, s: DetectSettings) -> bool:
    """A GPU inside a collective's kernel shows full utilisation while it only waits."""
    gpu = view.beat.gpu if view.beat else None
    is_in_collective = view.stack is not None and view.stack.activity is Activity.COLLECTIVE
    busy = gpu is not None and (gpu.utilisation or 0.0) >= s.working_gpu_percent
    return busy and not is_in_collective


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
