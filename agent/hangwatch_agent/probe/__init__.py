"""The probe: runs inside a rank, reads torch's counters, writes them to a record.

Standard library only. It never raises into, blocks or slows the trainer. Its modules import each
other relatively, since the injected sitecustomize loads this package by file location, under a
private name, in environments that do not have Hangwatch. Written for Python 3.9, which is older
than the rest of the product needs.
"""

from __future__ import annotations

import os
import sys
from typing import Any

VERSION = "0.1.0"
# One probe per process, whoever loads it first (sitecustomize, hangwatch.auto, an import by name).
PRIVATE_NAME = "_hangwatch_probe"
TRUE = ("1", "true", "yes", "on")  # what any HANGWATCH_* flag takes for yes

_running: Any = None  # the Loop, once torch.distributed has been imported
_has_started = False


def start() -> None:
    """Watch this process from the moment it imports torch.distributed. Idempotent, never raises."""
    try:
        first = sys.modules.setdefault(PRIVATE_NAME, sys.modules[__name__])
        if first is not sys.modules[__name__]:
            first.start()
            return
        _start()
    except Exception:  # boundary to the trainer: it goes on without a probe
        return


def _start() -> None:
    global _has_started
    if _has_started or is_disabled():
        return
    _has_started = True
    from . import hook

    hook.after_import(_begin)


def _begin() -> None:
    """Runs inside the import of torch.distributed, so nothing may leave it."""
    global _running
    try:
        from . import loop

        running = loop.Loop(run_dir(), VERSION)
        running.start()
        _running = running
    except Exception:  # boundary to the trainer: it goes on without a probe
        return


def is_disabled() -> bool:
    return os.environ.get("HANGWATCH_DISABLE", "").strip().lower() in TRUE


def run_dir() -> str:
    """Where records go: HANGWATCH_RUN_DIR, else the default."""
    chosen = os.environ.get("HANGWATCH_RUN_DIR")
    return os.path.abspath(chosen) if chosen else default_run_dir()


def default_run_dir() -> str:
    """The run dir of this user where none is chosen: the rule for probe, agent and `run` alike.

    Never in the home folder: several nodes may share it, and pids mean something on one node only.
    """
    if os.geteuid() == 0:
        return "/run/hangwatch"
    base = os.environ.get("XDG_RUNTIME_DIR")
    # A predictable name in /tmp: whoever uses it refuses a folder of another user, see `folder`.
    return os.path.join(base, "hangwatch") if base else f"/tmp/hangwatch-{os.geteuid()}"  # noqa: S108
