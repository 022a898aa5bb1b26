"""Single frames: whose code they are, and how they are written for people. No judgement of a
whole stack.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache

from hangwatch_agent import wire

# Any path of an interpreter's own library or of an installed package.
_INSTALLED = re.compile(
    r"(^|/)(lib|lib64)/python\d[\d.]*t?/|(^|/)(site|dist)-packages/|^<frozen |^<string>$|^~"
)
# torch imported from a source checkout, or py-spy's short file names.
_TORCH = re.compile(
    r"(^|/)torch/(_\w+|ao|autograd|backends|cuda|distributed|export|fx|functional|func|hub|jit|library"
    r"|multiprocessing|nn|onnx|optim|profiler|serialization|storage|utils)(/|\.py$)"
)
# Our own code inside the rank, when it is loaded from a checkout.
_PROBE = re.compile(r"(^|/)(hangwatch_agent/probe/|hangwatch/(__init__|auto)\.py$)")
_QUALIFIER = re.compile(r"^.*\.(?=[^.])")


@lru_cache(maxsize=65536)
def is_framework_file(file: str) -> bool:
    """Whether a file belongs to torch, the standard library, an installed package or the probe."""
    if _INSTALLED.search(file) or _TORCH.search(file) or _PROBE.search(file):
        return True
    if file.startswith("/"):
        return False
    first = file.split("/", 1)[0].removesuffix(".py")
    return first in sys.stdlib_module_names


def is_framework(frame: wire.Frame) -> bool:
    """Whether the frame is anything but the user's own Python code."""
    return frame.is_native or is_framework_file(frame.file)


@lru_cache(maxsize=65536)
def function(name: str) -> str:
    """The bare name of a qualified one: `__getitem__` of `main.<locals>.Data.__getitem__`."""
    return _QUALIFIER.sub("", name)


def where(frame: wire.Frame | None) -> str:
    """`train.py:88 in __getitem__`; native frames have no line."""
    if frame is None:
        return ""
    base = frame.file.rsplit("/", 1)[-1]
    place = f"{base}:{frame.line}" if frame.line else base
    return f"{place} in {function(frame.name)}"


def python_only(frames: Iterable[wire.Frame]) -> tuple[wire.Frame, ...]:
    return tuple(frame for frame in frames if not frame.is_native)


def user_frame(frames: Sequence[wire.Frame]) -> wire.Frame | None:
    """The innermost frame of the user's own code, else the innermost Python frame, else None."""
    python = python_only(frames)
    own = next((frame for frame in python if not is_framework(frame)), None)
    return own or (python[0] if python else None)


def place(frames: Sequence[wire.Frame]) -> tuple[str, str]:
    """Where a stack is in the user's code, and the innermost Python function: `all_reduce`."""
    leaf = next(iter(python_only(frames)), None)
    return where(user_frame(frames)), function(leaf.name) if leaf is not None else ""


def main_process(stacks: Iterable[wire.ProcessStacks]) -> wire.ProcessStacks | None:
    return next((process for process in stacks if process.role == "main"), None)
