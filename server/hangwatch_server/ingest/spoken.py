"""What an agent may speak of whose token is limited to some jobs: the rest of a heartbeat is left
out. Pure.

Left out and not refused: a node that several teams share runs other jobs too, and its agent says so
in good faith. A job is known to all nodes by its launch's key, so a name alone is no proof: where
the job is known already, the name that it has here counts as well.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from hangwatch_agent import wire
from hangwatch_server import patterns


def own(
    heartbeat: wire.Heartbeat, pattern: str, name_of: Callable[[str], str | None]
) -> tuple[wire.Heartbeat, frozenset[str]]:
    """The heartbeat without other jobs, and the names of those; `name_of` is of a known launch."""
    if not pattern:
        return heartbeat, frozenset()
    said = {launch.key: launch.name for launch in heartbeat.launches}
    keys = said.keys() | {beat.launch for beat in heartbeat.ranks}
    names = {key: {said.get(key), name_of(key)} - {None} for key in keys}
    mine = {key for key, found in names.items() if found and _all_match(pattern, found)}
    left = msgspec.structs.replace(
        heartbeat,
        launches=tuple(launch for launch in heartbeat.launches if launch.key in mine),
        ranks=tuple(beat for beat in heartbeat.ranks if beat.launch in mine),
        groups=tuple(info for info in heartbeat.groups if info.launch in mine),
        ras=tuple(report for report in heartbeat.ras if report.launch in mine),
    )
    others = {said.get(key) or name_of(key) or key for key in keys - mine}
    return left, frozenset(others)


def _all_match(pattern: str, names: set[str | None]) -> bool:
    return all(patterns.matches(pattern, name or "") for name in names)
