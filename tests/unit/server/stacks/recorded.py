"""Stacks that py-spy took of real programs, as the agent would send them."""

from __future__ import annotations

import json
from pathlib import Path

from hangwatch_agent import wire

FOLDER = Path(__file__).parents[3] / "data" / "stacks"


def process(name: str, role: str = "main") -> wire.ProcessStacks:
    """The process recorded in `tests/data/stacks/<name>.json`."""
    threads = json.loads((FOLDER / f"{name}.json").read_text())
    return wire.ProcessStacks(
        pid=threads[0]["pid"],
        role=role,
        threads=tuple(
            wire.Thread(
                pid=thread["pid"],
                thread_id=thread["os_thread_id"],
                name=thread["thread_name"],
                frames=tuple(
                    _frame(item["name"], item["filename"], item["line"])
                    for item in thread["frames"]
                ),
                is_active=thread["active"],
                owns_gil=thread["owns_gil"],
            )
            for thread in threads
        ),
    )


def _frame(name: str, file: str, line: int) -> wire.Frame:
    return wire.Frame(name=name, file=file, line=line, is_native=".so" in file.rsplit("/", 1)[-1])


def part(
    *processes: wire.ProcessStacks, facts: wire.ProcessFacts | None = None, capture: str = "c1"
) -> wire.CapturePart:
    return wire.CapturePart(
        capture=capture,
        launch="launch",
        rank=0,
        pid=processes[0].pid if processes else 1,
        age_s=0.0,
        stacks=processes,
        process=facts,
    )


def stack(*frames: tuple[str, str, int], pid: int = 100, role: str = "main") -> wire.ProcessStacks:
    """One idle process with only a main thread; frames (name, file, line), innermost first."""
    made = tuple(wire.Frame(name=name, file=file, line=line) for name, file, line in frames)
    thread = wire.Thread(pid=pid, thread_id=pid, name="MainThread", frames=made)
    return wire.ProcessStacks(pid=pid, role=role, threads=(thread,))
