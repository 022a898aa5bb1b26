"""Who may be blamed for a collective that all its members have entered and that does not finish.

Nobody, unless something speaks against a member: its process cannot run, or most of the others have
finished a collective that nobody can finish alone. (A GPU that failed holds its calls up from
inside, see `pending`.) Which cable or switch it is no counter tells.
"""

from __future__ import annotations

from typing import NamedTuple

from hangwatch_server import op_names
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey


class Suspects(NamedTuple):
    """Ranks with the reason in words; none when nothing speaks against anybody."""

    ranks: tuple[int, ...]
    reason: str


NOBODY = Suspects((), "")


def suspects(survey: Survey, op: PendingOp) -> Suspects:
    """Processes that cannot run, else the minority that did not finish."""
    if op.form is not Form.COLLECTIVE or op.is_mismatch:
        return NOBODY
    inside = sorted(op.have)
    unable = tuple(rank for rank in inside if _cannot_run(survey, rank))
    if unable and len(unable) < len(inside):
        return Suspects(unable, "its process cannot run")
    is_minority = 0 < len(inside) < len(op.done)
    if is_minority and op_names.proves_arrival(op.op) and survey.fates_are_alive(op.done):
        return Suspects(tuple(inside), "most members have finished it, these have not")
    return NOBODY


def _cannot_run(survey: Survey, rank: int) -> bool:
    beat = survey.beat(rank)
    if beat is None or survey.fate(rank) is not Fate.HELD:
        return False
    return beat.process.is_unresponsive or beat.process.state == "D"
