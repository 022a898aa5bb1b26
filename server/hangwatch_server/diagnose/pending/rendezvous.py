"""Pending rendezvous: init_process_group and new_group calls that wait for ranks to come.

No sequence numbers exist yet. Expected are as many ranks as the waiting calls say. Ranks that
never got as far as a process are missing before those that have one and are elsewhere (lowest level
wins).
"""

from __future__ import annotations

from hangwatch_agent.wire import Entry, InitWait, RankBeat
from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Activity

INIT = "init_process_group"
SUBGROUP = "new_group"  # and what calls it: new_subgroups, split_group


def pending(survey: Survey) -> list[PendingOp]:
    waits: dict[str, dict[int, tuple[InitWait, float]]] = {}
    for rank, view in survey.snapshot.ranks.items():
        if view.beat is None or not view.beat.waits or survey.fate(rank) is Fate.GONE:
            continue
        wait = view.beat.waits[0]
        what = INIT if wait.what == INIT else SUBGROUP
        waits.setdefault(what, {})[rank] = (wait, wait.age_s + view.age_s)
    return [
        _op(survey, what, inside)
        for what, inside in waits.items()
        if max(age_s for _, age_s in inside.values()) >= survey.settings.stable_after_s
    ]


def _op(survey: Survey, what: str, inside: dict[int, tuple[InitWait, float]]) -> PendingOp:
    present = set(inside)
    present.update(wait.rank for wait, _ in inside.values() if wait.rank is not None)
    have: dict[int, Entry | None] = dict.fromkeys(inside)
    levels: dict[str, list[int]] = {"": [], "gone": [], "absent": [], "unknown": []}
    expected, is_sure = _expected(survey, what, inside)
    for rank in range(expected):
        if rank not in present:
            level = _level(survey, what, rank)
            levels[level if is_sure or not level else "unknown"].append(rank)
    missing = levels["gone"]
    return PendingOp(
        form=Form.RENDEZVOUS,
        op=what,
        have=have,
        absent=tuple(missing or levels["absent"]),
        unknown=() if missing or levels["absent"] else tuple(levels["unknown"]),
        stalled_s=max(age_s for _, age_s in inside.values()),
        detail=next((wait.detail for wait, _ in inside.values() if wait.detail), ""),
    )


def _expected(
    survey: Survey, what: str, inside: dict[int, tuple[InitWait, float]]
) -> tuple[int, bool]:
    """How many ranks are waited for, and whether any rank that is not there is surely one of them.

    new_group says the size of the group, but waits for the whole world, unless it was called with
    use_local_synchronization; more waiting ranks than members rule that out.
    """
    asked = max(wait.expected for wait, _ in inside.values())
    world = survey.snapshot.world_size
    if what == INIT:
        return asked or world, True
    return world, asked in (0, world) or len(inside) > asked


def _level(survey: Survey, what: str, rank: int) -> str:
    """ "" when it came; "gone" also when no process of it was ever seen."""
    view, beat, fate = survey.view(rank), survey.beat(rank), survey.fate(rank)
    if beat is None and view is not None and view.node:
        return "unknown"  # it had a process before this server started
    if beat is None or fate is Fate.GONE:
        return "gone"
    if what == INIT and (beat.is_initialised or beat.is_destroyed):
        return ""
    if _is_inside(survey, rank):
        return ""
    if fate in (Fate.SILENT, Fate.LATE) or not _can_tell(survey, beat, rank):
        return "unknown"
    return "absent"


def _is_inside(survey: Survey, rank: int) -> bool:
    stack = survey.stack(rank)
    return stack is not None and stack.activity is Activity.RENDEZVOUS


def _can_tell(survey: Survey, beat: RankBeat, rank: int) -> bool:
    return standing.has_probe(beat) or survey.is_outside(rank)
