"""Captured stacks in the formats of other people's viewers: speedscope and Chrome's trace.

Equal stacks are one sample, named by its ranks, so that a file of 16,384 ranks stays small. Neither
format knows ranks: speedscope shows them as an innermost frame, a trace as the name of a track.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hangwatch_agent import wire
from hangwatch_server import outlines, ranges
from hangwatch_server.stacks import frames
from hangwatch_server.stacks.merge import RankStacks

# https://www.speedscope.app/file-format-schema.json
SCHEMA = "https://www.speedscope.app/file-format-schema.json"
# https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
SPAN_US = 1_000_000  # a stack has no length: one second is easy to see
Json = dict[str, Any]  # both formats are free JSON by nature

_ROLES = ("main", "loader", "compile", "checkpoint")
_TRACKS = {
    "main": "ranks",
    "loader": "loader workers",
    "compile": "compilers",
    "checkpoint": "checkpoint writers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """One stack that some threads share, outermost frame first."""

    role: str
    thread: str  # "main thread", or the name of another one
    ranks: str
    count: int
    frames: tuple[wire.Frame, ...]

    @property
    def label(self) -> str:
        noun = "rank" if self.count == 1 else "ranks"
        return f"{noun} {self.ranks} ({self.count})"


def speedscope(parts: Sequence[RankStacks], name: str, *, native: bool = False) -> Json:
    """One profile per kind of process; a sample's weight is how many ranks have the stack."""
    index: dict[wire.Frame, int] = {}
    listed: list[Json] = []
    profiles: list[Json] = []
    samples = [sample for sample in _samples(parts, native) if sample.thread == "main thread"]
    for role in _roles(samples):
        of_role = [sample for sample in samples if sample.role == role]
        stacks = [_indices(sample, index, listed) for sample in of_role]
        profiles.append(
            {
                "type": "sampled",
                "name": _TRACKS.get(role, f"{role} processes"),
                "unit": "none",
                "startValue": 0,
                "endValue": sum(sample.count for sample in of_role),
                "samples": stacks,
                "weights": [sample.count for sample in of_role],
            }
        )
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": "hangwatch",
        "activeProfileIndex": 0,
        "shared": {"frames": listed},
        "profiles": profiles,
    }


def chrome_trace(parts: Sequence[RankStacks], name: str, *, native: bool = False) -> Json:
    """Nested slices, one track per distinct stack; kinds of processes are the trace's processes."""
    events: list[Json] = []
    samples = list(_samples(parts, native))
    for pid, role in enumerate(_roles(samples), 1):
        events.append(_meta("process_name", pid, 0, _TRACKS.get(role, f"{role} processes")))
        of_role = [sample for sample in samples if sample.role == role]
        for tid, sample in enumerate(of_role, 1):
            other = "" if sample.thread == "main thread" else f", {sample.thread}"
            events.append(_meta("thread_name", pid, tid, sample.label + other))
            events.append(
                {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid,
                 "args": {"sort_index": tid}}
            )  # fmt: skip
            events.extend(_slices(sample, pid, tid))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"capture": name}}


def _samples(parts: Iterable[RankStacks], native: bool) -> Iterator[_Sample]:
    """Distinct stacks: main threads first, and the odd ones of each kind first."""
    grouped: dict[tuple[str, str, tuple[wire.Frame, ...]], set[int]] = {}
    for part in parts:
        for process in part.stacks:
            main = outlines.main_thread(process)
            for thread in process.threads:
                kept = thread.frames if native else frames.python_only(thread.frames)
                name = "main thread" if thread is main else thread.name or "a thread"
                if kept:
                    grouped.setdefault((process.role, name, kept), set()).add(part.rank)

    def order(item: tuple[tuple[str, str, tuple[wire.Frame, ...]], set[int]]) -> tuple[Any, ...]:
        (_, name, _), ranks = item
        return (name != "main thread", len(ranks), min(ranks), name)

    for (role, name, kept), ranks in sorted(grouped.items(), key=order):
        yield _Sample(
            role=role,
            thread=name,
            ranks=ranges.text(ranks),
            count=len(ranks),
            frames=tuple(reversed(kept)),
        )


def _roles(samples: Iterable[_Sample]) -> list[str]:
    found = {sample.role for sample in samples}
    return [role for role in _ROLES if role in found] + sorted(found.difference(_ROLES))


def _indices(sample: _Sample, index: dict[wire.Frame, int], listed: list[Json]) -> list[int]:
    leaf = wire.Frame(name=f"[{sample.label}]", file="", line=0)
    return [_index(frame, index, listed) for frame in (*sample.frames, leaf)]


def _index(frame: wire.Frame, index: dict[wire.Frame, int], listed: list[Json]) -> int:
    number = index.get(frame)
    if number is None:
        number = index[frame] = len(listed)
        entry: Json = {"name": frame.name or "?"}
        if frame.file:
            entry["file"] = frame.file
        if frame.line > 0:
            entry["line"] = frame.line
        listed.append(entry)
    return number


def _slices(sample: _Sample, pid: int, tid: int) -> Iterator[Json]:
    """Each frame starts a little later and ends a little earlier, so that they nest."""
    for depth, frame in enumerate(sample.frames):
        yield {
            "ph": "X",
            "name": frame.name or "?",
            "cat": "native" if frame.is_native else "python",
            "pid": pid,
            "tid": tid,
            "ts": depth,
            "dur": SPAN_US - 2 * depth,
            "args": {"file": frame.file, "line": frame.line, "ranks": sample.ranks},
        }


def _meta(kind: str, pid: int, tid: int, name: str) -> Json:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
