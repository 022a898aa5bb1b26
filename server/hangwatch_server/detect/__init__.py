"""Detection: when a stall is suspected, when it is a hang, and which captures would tell.

Pure: a memory, a snapshot and a finding in; the next memory and a decision out. Who is to blame is
`diagnose`'s part; what becomes of a decision is `incidents`'.
"""

from __future__ import annotations

from hangwatch_server.detect.decision import Decision, Wish
from hangwatch_server.detect.memory import Memory, ask_anew, confirm
from hangwatch_server.detect.restarts import inherit, next_attempt
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.detect.step import needs_diagnosis, step

__all__ = [
    "Decision",
    "DetectSettings",
    "Memory",
    "Wish",
    "ask_anew",
    "confirm",
    "inherit",
    "needs_diagnosis",
    "next_attempt",
    "step",
]
