"""Calls of init_process_group and new_group that have not returned, read from the threads' frames.

Wrapping these functions would break code that compares or pickles them, so the probe looks at where
each thread stands. It reads rank, world size and init method from the frame, once per wait.
"""

from __future__ import annotations

import os
import sys
import time
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

MAX_FRAMES = 64  # looked at from the innermost; a wait for peers is never deeper below its caller
OUTER = ("init_process_group", "new_group", "split_group", "_store_based_barrier")
INNER = (
    "_env_rendezvous_handler",
    "_tcp_rendezvous_handler",
    "_file_rendezvous_handler",
    "_create_c10d_store",
    "_new_process_group_helper",
    "_new_group_with_tag",
)
STORE = {
    "_env_rendezvous_handler",
    "_tcp_rendezvous_handler",
    "_file_rendezvous_handler",
    "_create_c10d_store",
}
FILES = ("distributed_c10d.py", "rendezvous.py")


class Inits:
    """Remembers since when each wait has been seen."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int, str], dict[str, Any]] = {}

    def read(self) -> list[dict[str, Any]]:
        now_ns = time.monotonic_ns()
        waits: dict[tuple[int, int, str], dict[str, Any]] = {}
        for thread, top in sys._current_frames().items():
            frames = _waiting_frames(top)
            if not frames:
                continue
            outer = frames[-1]
            key = (thread, id(outer), outer.f_code.co_name)
            known = self._seen.get(key)
            if known is None or not known.get("expected"):
                since_ns = now_ns if known is None else known["since_ns"]
                known = {"what": outer.f_code.co_name, "since_ns": since_ns, **_facts(frames)}
            waits[key] = {**known, "stage": _stage(frames)}
        self._seen = waits
        return list(waits.values())


def _waiting_frames(top: FrameType | None) -> list[FrameType]:
    """The frames of torch's set-up functions, innermost first; the user called the last one."""
    found = []
    frame = top
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        if code.co_name in OUTER or code.co_name in INNER:
            path, _, name = code.co_filename.rpartition("/")
            if name in FILES and path.endswith("torch/distributed"):
                found.append(frame)
        frame = frame.f_back
    while found and found[-1].f_code.co_name not in OUTER:
        found.pop()
    return found


def _stage(frames: list[FrameType]) -> str:
    """Whether it still connects to the store, or meets its peers there."""
    names = {frame.f_code.co_name for frame in frames}
    return "store" if names & STORE else "group"


def _facts(frames: list[FrameType]) -> dict[str, Any]:
    rank = expected = None
    detail = ""
    for frame in frames:
        values = frame.f_locals
        rank = _number(rank, values, ("rank", "group_rank"), 0)
        expected = _number(expected, values, ("world_size", "group_size"), 1)
        method = values.get("init_method") or values.get("url")
        if isinstance(method, str) and not detail:
            detail = without_secrets(method)
    if frames[-1].f_code.co_name == "init_process_group":
        rank = _from_environment("RANK") if rank is None else rank
        expected = _from_environment("WORLD_SIZE") if expected is None else expected
        if detail in ("", "env://"):
            address = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
            detail = without_secrets("env://{}:{}".format(*address)) if all(address) else "env://"
    else:
        rank = None  # inside a subgroup the number at hand is not the global rank
    return {"rank": rank, "expected": expected or 0, "detail": detail}


def _number(known: int | None, values: Any, names: tuple[str, ...], least: int) -> int | None:
    for name in names:
        value = values.get(name)
        if known is None and type(value) is int and value >= least:
            known = value
    return known


def _from_environment(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def without_secrets(method: str) -> str:
    """Scheme, host, port and path of an init method: no user, password, query or fragment."""
    try:
        parts = urlsplit(method)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{host}{port}{parts.path}"[:300]
