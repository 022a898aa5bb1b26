"""Pending monitored barriers: rank 0 of the group asks each member in turn, the others wait for it.

The recorder does not see them, so who is inside is known from the wrapped calls alone.
"""

from __future__ import annotations

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey


def pending(survey: Survey) -> list[PendingOp]:
    inside: dict[str, dict[int, float]] = {}
    for rank, view in survey.snapshot.ranks.items():
        if view.beat is None or not view.beat.calls:
            continue
        for call in view.beat.calls:
            if call.op == "monitored_barrier":
                inside.setdefault(call.gid, {})[rank] = call.age_s + view.age_s
    found: list[PendingOp] = []
    for gid, ages in inside.items():
        if max(ages.values()) >= survey.settings.stable_after_s:
            found.append(_op(survey, gid, ages))
    return found


def _op(survey: Survey, gid: str, ages: dict[int, float]) -> PendingOp:
    group = survey.snapshot.groups.get(gid)
    have: dict[int, Entry | None] = dict.fromkeys(ages)
    absent, unknown, holding = [], [], []
    for rank in group.ranks if group is not None else ():
        fate = survey.fate(rank)
        if rank in ages:
            if fate in (Fate.GONE, Fate.STOPPED):
                holding.append(rank)
        elif fate in (Fate.SILENT, Fate.LATE) or not standing.has_probe(survey.beat(rank)):
            unknown.append(rank)
        else:
            absent.append(rank)
    return PendingOp(
        form=Form.MONITORED_BARRIER,
        op="monitored_barrier",
        gid=gid,
        have=have,
        absent=tuple(absent),
        unknown=tuple(unknown),
        holding=tuple(holding),
        stalled_s=max(ages.values()),
    )
