"""What the descendants of a rank are for: loader workers, compilers, the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from hangwatch_agent.procfs import Stat

MAX_CHILDREN = 64  # per rank; a loader has tens of workers, a runaway fork has thousands
LOADER, COMPILE, CHECKPOINT, OTHER = "loader", "compile", "checkpoint", "other"
HELPER = "helper"  # belongs to the interpreter: no rank ever waits for its work
_COMPILERS = frozenset(
    {"ptxas", "cicc", "nvcc", "nvlink", "fatbinary", "cc1", "cc1plus", "gcc", "g++", "c++", "cc"}
    | {"clang", "clang++", "ld", "ld.lld", "as", "hipcc", "lld", "icpx"}
)

_HELPERS = ("resource_tracker", "semaphore_tracker")


def role_of(name: str, arguments: Sequence[str], parent: str, rank_arguments: Sequence[str]) -> str:
    """Role of a child from its thread name, command line and its parent's role."""
    program = PurePath(arguments[0]).name if arguments else ""
    text = " ".join(arguments[:8])
    if parent == COMPILE or name in _COMPILERS or program in _COMPILERS:
        return COMPILE
    if "torch/_inductor/compile_worker" in text or "torch._inductor.compile_worker" in text:
        return COMPILE
    if any(helper in text for helper in _HELPERS):
        return HELPER
    if "multiprocessing.forkserver" in text:  # its workers are forks of it
        return LOADER if parent == HELPER else HELPER
    if name.startswith("pt_data_worker"):  # torch.utils.data._utils.worker names itself so
        return LOADER
    if parent == LOADER:
        return OTHER
    if "multiprocessing.spawn" in text:
        return LOADER
    # A fork keeps its parent's command line: how loader workers looked before they had a name.
    return LOADER if arguments and tuple(arguments) == tuple(rank_arguments) else OTHER


def descendants(root: int, by_parent: Mapping[int, Iterable[Stat]]) -> list[Stat]:
    """All processes below `root`, parents before children, at most MAX_CHILDREN."""
    found: list[Stat] = []
    waiting = [root]
    while waiting and len(found) < MAX_CHILDREN:
        below = sorted(by_parent.get(waiting.pop(0), ()), key=lambda stat: stat.pid)
        found.extend(below)
        waiting.extend(stat.pid for stat in below)
    return found[:MAX_CHILDREN]


def is_python(arguments: Sequence[str], executable: str = "") -> bool:
    """True for what py-spy can read: an interpreter, by its program's or its file's name."""
    program = PurePath(executable or (arguments[0] if arguments else "")).name
    return "python" in program or program.startswith("pypy")
