"""Whether stacks can be taken on this node, and if not, the exact thing to change.

The start-up check dumps a child of the agent's own: under Yama it is as foreign as a rank would be,
since py-spy is its sibling and not its parent. Whether other users' processes can be read is a
question of CAP_SYS_PTRACE, which is looked up.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from hangwatch_agent import procfs

CAP_SYS_PTRACE = 19
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_CONTAINER_REMEDY = (
    "Docker: --cap-add SYS_PTRACE; Kubernetes: "
    'securityContext.capabilities.add: ["SYS_PTRACE"] on the agent, with hostPID: true'
)


@dataclass(frozen=True)
class Problem:
    """Why stacks are missing, and what helps; both "" when all is well."""

    reason: str = ""
    remedy: str = ""


def find_py_spy() -> str | None:
    """The py-spy beside this interpreter, else the one on PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("py-spy")


MISSING = Problem(
    "py-spy is not installed",
    f"{sys.executable} -m pip install 'py-spy>=0.4.0', then restart the agent",
)


def yama_scope() -> int:
    """kernel.yama.ptrace_scope; 0 where the kernel has no Yama."""
    try:
        return int(_YAMA.read_text())
    except (OSError, ValueError):
        return 0


def has_capability(proc: procfs.Procfs) -> bool:
    """True when this process holds CAP_SYS_PTRACE."""
    return bool(procfs.parse_capabilities(proc.status(os.getpid())) >> CAP_SYS_PTRACE & 1)


def explain(
    error: str, *, uid: int, euid: int, can_ptrace: bool, scope: int, is_alive: bool
) -> Problem:
    """Turn py-spy's error text into a reason and a remedy. Pure."""
    lowered = error.lower()
    if not is_alive or "no such process" in lowered or "os error 3" in lowered:
        return Problem("the process has gone", "none: it ended before its stack could be read")
    if any(sign in lowered for sign in ("permission denied", "eperm", "operation not permitted")):
        return _no_permission(uid=uid, euid=euid, can_ptrace=can_ptrace, scope=scope)
    if any(sign in lowered for sign in ("find a python version", "python version", "unsupported")):
        return Problem(
            f"py-spy cannot read this interpreter: {first_line(error)}",
            "upgrade py-spy beside the agent (pip install -U py-spy): it reads CPython up to 3.14, "
            "but no free-threaded build and no other program",
        )
    if "failed to get stack" in lowered or "copy" in lowered or "bad address" in lowered:
        return Problem(
            f"the stack changed while it was read: {first_line(error)}",
            "take the capture again; --native pauses the process and reads a steady stack",
        )
    return Problem(first_line(error) or "py-spy failed without a word", "take the capture again")


def _no_permission(*, uid: int, euid: int, can_ptrace: bool, scope: int) -> Problem:
    if can_ptrace and scope < 3:
        return Problem(
            "the kernel refused to let py-spy read the process although CAP_SYS_PTRACE is held",
            "a security module or another user namespace forbids it: check AppArmor or SELinux "
            "denials (journalctl -k), and run the agent in the node's own user namespace",
        )
    if scope >= 3:
        return Problem(
            "kernel.yama.ptrace_scope is 3: nobody may read other processes until reboot",
            "set kernel.yama.ptrace_scope to 1 in /etc/sysctl.d and reboot",
        )
    if uid == euid and scope > 0:
        return Problem(
            f"no permission: kernel.yama.ptrace_scope is {scope} and CAP_SYS_PTRACE is missing",
            "sysctl kernel.yama.ptrace_scope=0, or give the agent CAP_SYS_PTRACE "
            f"(systemd: AmbientCapabilities=CAP_SYS_PTRACE). {_CONTAINER_REMEDY}",
        )
    whose = "the process" if uid == euid else f"the process of uid {uid}"
    return Problem(
        f"no permission: the agent (uid {euid}) lacks CAP_SYS_PTRACE to read {whose}",
        "run the agent as root or as the job's user, or give it CAP_SYS_PTRACE (systemd: "
        f"AmbientCapabilities=CAP_SYS_PTRACE). {_CONTAINER_REMEDY}",
    )


def first_line(text: str) -> str:
    """First line of an error text that says something, bounded."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].removeprefix("Error: ")[:300] if lines else ""
