"""The payload of one beat: plain dicts with the keys of hangwatch_agent.payload, size-limited."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from . import groups, launch_names, record

MAX_LACKS = 32


def environment() -> dict[str, str]:
    return {
        name: os.environ[name][: launch_names.MAX_VALUE]
        for name in launch_names.NAMES
        if name in os.environ
    }


def from_environment(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default


def script() -> str:
    arguments = getattr(sys, "argv", None) or [""]
    return str(arguments[0])[:1024]


def of_group(group: groups.Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "description": group.description,
        "backend": group.backend,
        "ranks": groups.ranks_text(group.ranks),
        "epoch": group.epoch,
        "timeout_s": group.timeout_s,
        "counter": group.counter,
        "moved_ns": group.moved_ns,
        "seq": group.seq,
        "finished": group.finished,
        "started": group.started,
        "entries": group.entries,
        "tail": group.tail,
        "dumped_ns": group.dumped_ns,
        "dumped_counter": group.dumped_counter,
    }


def encoded(payload: dict[str, Any], limit: int = record.MAX_PAYLOAD) -> bytes:
    """JSON of at most `limit` bytes: tails, oldest entries, counts, calls and groups go in turn.

    What went is counted in `omitted`; the caller's payload is changed.
    """
    payload["lacks"] = payload.get("lacks", [])[:MAX_LACKS]
    data = _json(payload)
    while len(data) > limit:
        dropped = _drop(payload)
        if not dropped:
            raise ValueError("a payload without lists is still too long")
        payload["omitted"] = payload.get("omitted", 0) + dropped
        data = _json(payload)
    return data


def _drop(payload: dict[str, Any]) -> int:
    """Halve the longest lists of entries, or else the list that matters least."""
    tails = [group["tail"] for group in payload["groups"] if group.get("tail")]
    if tails:
        for group in payload["groups"]:
            group["tail"] = None
        return sum(len(tail["calls"]) for tail in tails)
    longest = max((len(group["entries"]) for group in payload["groups"]), default=0)
    if longest:
        keep = longest // 2
        before = sum(len(group["entries"]) for group in payload["groups"])
        for group in payload["groups"]:
            group["entries"] = group["entries"][-keep:] if keep else []
        return before - sum(len(group["entries"]) for group in payload["groups"])
    for name in ("p2p", "calls", "groups", "waits", "lacks"):
        items = payload[name]
        if items:
            keep = len(items) // 2
            payload[name] = items[:keep]
            return len(items) - keep
    return 0


def _json(payload: dict[str, Any]) -> bytes:
    # A path may hold bytes that are no text (surrogates here), which no JSON reader accepts.
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")
