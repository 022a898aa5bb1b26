"""A short stable text for a stack, equal wherever the same code waits at the same line on any
node.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

from hangwatch_agent import wire

# Torch's generated code and temporary folders differ between processes; addresses between runs.
_VARYING = re.compile(r"0x[0-9a-f]+|/tmp/[^/]+/|torchinductor_[^/]+/")


def signature(frames: Iterable[wire.Frame]) -> str:
    """16 hex digits of Python's functions, files and lines, innermost first."""
    lines = [_line(frame) for frame in frames if not frame.is_native]
    return hashlib.sha256(b"".join(lines)).hexdigest()[:16]


@lru_cache(maxsize=65536)
def _line(frame: wire.Frame) -> bytes:
    return f"{frame.name}\0{_VARYING.sub('', frame.file)}\0{frame.line}\n".encode()
