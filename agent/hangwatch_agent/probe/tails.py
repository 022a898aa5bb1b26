"""Keeps a long record of calls short: the newest entries whole, older finished ones as a tail.

A tail names each distinct call once and then lists (collective_seq_id, which call), so that 64
calls of a group that repeats itself take little more room than 16.
"""

from __future__ import annotations

from typing import Any, Optional

WHOLE = 16  # newest entries that travel whole
MAX_KINDS = 24  # distinct calls in a tail; older ones than those go
_PLACE = ("seq", "record_id", "retired", "started", "timeout_ms")  # what may differ within a kind


def split(entries: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Optional[dict[str, Any]]]:
    """Entries, oldest first, as (whole ones, tail or None); what is not retired stays whole."""
    pending = (place for place, entry in enumerate(entries) if not entry["retired"])
    border = min(next(pending, len(entries)), max(0, len(entries) - WHOLE))
    kinds: list[dict[str, Any]] = []
    known: dict[str, int] = {}
    calls: list[list[int]] = []
    for entry in reversed(entries[:border]):
        shape = repr([value for key, value in entry.items() if key not in _PLACE])
        if shape not in known:
            if len(kinds) == MAX_KINDS:
                break
            known[shape] = len(kinds)
            kinds.append(entry)
        calls.insert(0, [entry["seq"], known[shape]])
    return entries[border:], {"calls": calls, "kinds": kinds} if calls else None
