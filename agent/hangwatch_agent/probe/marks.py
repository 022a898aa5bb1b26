"""What the user announced through the `hangwatch` package: the step, and the phase with its limit.

The probe only looks at a module that the user's code has imported; it never imports it.
"""

from __future__ import annotations

import sys
from typing import Any


def read() -> dict[str, Any]:
    marks = getattr(sys.modules.get("hangwatch"), "marks", None)
    if marks is None:
        return {}
    phase = marks.current()
    found: dict[str, Any] = {"step": marks.step}
    if phase is not None:
        found["phase"] = phase.name
        found["phase_since_ns"] = phase.since_ns
        found["phase_limit_s"] = phase.limit_s
    return found
