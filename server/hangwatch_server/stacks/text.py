"""Captured stacks as plain text, equal ones once with their ranks: for terminals, mails and
tickets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hangwatch_agent import wire
from hangwatch_server import outlines, ranges
from hangwatch_server.stacks import frames
from hangwatch_server.stacks.merge import RankStacks

_Key = tuple[str, str, tuple[wire.Frame, ...]]


def text(parts: Sequence[RankStacks], *, native: bool = False) -> str:
    """All threads of all processes, odd stacks and main threads first; "" without any."""
    groups = sorted(_grouped(parts, native).items(), key=_order)
    blocks = [_block(key, ranks) for key, ranks in groups]
    return "\n".join([*blocks, *_missing(parts)])


def _grouped(parts: Iterable[RankStacks], native: bool) -> dict[_Key, set[int]]:
    grouped: dict[_Key, set[int]] = {}
    for part in parts:
        for process in part.stacks:
            main = outlines.main_thread(process)
            for thread in process.threads:
                name = (
                    "main thread" if thread is main else f"thread {thread.name or 'without name'}"
                )
                shown = thread.frames if native else frames.python_only(thread.frames)
                grouped.setdefault((process.role, name, shown), set()).add(part.rank)
    return grouped


def _order(item: tuple[_Key, set[int]]) -> tuple[bool, bool, int, str]:
    (role, name, _), ranks = item
    return (role != "main", name != "main thread", len(ranks), ranges.text(ranks))


def _block(key: _Key, ranks: set[int]) -> str:
    role, name, stack = key
    noun = "rank" if len(ranks) == 1 else "ranks"
    owner = "" if role == "main" else f", {role} process"
    head = _plain(f"{noun} {ranges.text(ranks)} ({len(ranks)}){owner}, {name}")
    lines = [f"    {_plain(f'{frame.name} ({frame.file}:{frame.line})')}" for frame in stack]
    return "\n".join([head, *(lines or ["    (no Python frames)"]), ""])


def _plain(line: str) -> str:
    """A line that a job chose, without what would move a terminal's cursor or begin another."""
    return line if line.isprintable() else "".join(filter(str.isprintable, line))


def _missing(parts: Iterable[RankStacks]) -> Iterator[str]:
    for part in parts:
        for process in part.stacks:
            if not process.threads:
                remedy = f" {process.remedy}" if process.remedy else ""
                yield f"rank {part.rank}, pid {process.pid}: no stack: {process.reason}{remedy}\n"
