"""Who of a group holds up a call that others wait in: who never came, and of whom nobody can say.

A group whose members contradict each other may be waiting in many calls at once, and a large one
has as many members to ask for each. Those whose numbers are exact and the same give one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hangwatch_agent.wire import Entry
from hangwatch_server import op_names
from hangwatch_server.diagnose import process, standing
from hangwatch_server.diagnose.pending import namesakes, rendezvous, undumped
from hangwatch_server.diagnose.pending.proofs import Proof
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.standing import Standing
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView

UNHEARD = frozenset({Fate.LATE, Fate.SILENT})
_UNABLE = frozenset({Fate.HELD, Fate.STOPPED, Fate.GONE})
_BLOCKING = ("absent", "unknown", "holding", "unheard", "unplaced")


@dataclass(frozen=True, slots=True)
class Members:
    """A group's members as each of its pending calls asks for them."""

    survey: Survey
    group: GroupView
    standings: dict[int, Standing]
    proof: Proof
    alike: tuple[list[int], ...]  # of a call that they are not in the same holds for all of a list
    apart: tuple[int, ...]  # all the others
    quiet_s: float  # since one that is heard, and does not contradict itself, has moved


def members(
    survey: Survey, group: GroupView, standings: dict[int, Standing], proof: Proof, *, calls: int
) -> Members:
    """To be asked about so many calls; about one alone, each member is asked for itself."""
    silent = survey.silent
    quiet_s = [one.stall_s for r, one in standings.items() if r not in silent and one.is_sane]
    alike = _alike(survey, standings, proof) if calls > 1 else ()
    known = {rank for ranks in alike for rank in ranks}
    apart = tuple([rank for rank in group.ranks if rank not in known]) if known else group.ranks
    return Members(survey, group, standings, proof, alike, apart, quiet_s=min(quiet_s, default=inf))


def _alike(survey: Survey, standings: dict[int, Standing], proof: Proof) -> tuple[list[int], ...]:
    """Members whose numbers are exact, with those that say the same."""
    found: dict[tuple[int | None, int, int | None, bool], list[int]] = {}
    alive, unwritten = survey.alive, survey.standings.undumped
    for rank, held in standings.items():
        if held.is_exact and rank in alive and rank not in unwritten:
            front = held.fronts[0].seq if held.fronts else None
            said = held.entered, held.completed, front, rank in proof.doubted
            found.setdefault(said, []).append(rank)
    return tuple(found.values())


def clock_s(asked: Members, have: dict[int, Entry | None]) -> float:
    """Age of the oldest front while no member advances.

    Members that are silent, or whose numbers contradict each other, tell of no advance.
    """
    standings = asked.standings
    return min(max([standings[rank].stall_s for rank in have]), asked.quiet_s)


def done(asked: Members, seq: int) -> tuple[int, ...]:
    """Members that have finished this call."""
    standings = asked.standings
    ranks = [r for r in asked.apart if (held := standings.get(r)) and held.completed >= seq]
    for alike in asked.alike:
        if standings[alike[0]].completed >= seq:
            ranks += alike
    return tuple(sorted(ranks)) if ranks else ()


def blockers(
    asked: Members, seq: int, have: dict[int, Entry | None]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The absent, the unknown, the holding and the unplaced members, each ascending."""
    found = _by_arrival(asked, seq, have)
    absent, holding = found["absent"], found["holding"]
    if absent:
        # Who came and died while waiting is a victim: the job may be torn down by now.
        holding = [rank for rank in holding if asked.survey.fate(rank) is not Fate.GONE]
    is_explained = bool(absent or found["unknown"] or holding)
    # Who had come before it fell silent is asked for only where nobody else is missing.
    unknown = found["unknown"] if is_explained else found["unheard"]
    unplaced = found["unplaced"]
    return (
        tuple(sorted(absent)),
        tuple(sorted(unknown)),
        tuple(sorted(holding)),
        tuple(sorted(unplaced)),
    )


def _by_arrival(asked: Members, seq: int, have: dict[int, Entry | None]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {kind: [] for kind in _BLOCKING}
    well = asked.survey.well
    for rank, front in have.items():
        if front is not None and front.is_started is not False and rank in well:
            continue  # the common case: it is inside and well
        kind = _arrival(asked, rank, seq, have)
        if kind in found:
            found[kind].append(rank)
    for rank in asked.apart:
        kind = _arrival(asked, rank, seq, have) if rank not in have else ""
        if kind in found:
            found[kind].append(rank)
    for alike in asked.alike:
        one = next((rank for rank in alike if rank not in have), None)
        kind = _arrival(asked, one, seq, have) if one is not None else ""
        if kind in found:
            found[kind] += [rank for rank in alike if rank not in have]
    return found


def _arrival(asked: Members, rank: int, seq: int, have: dict[int, Entry | None]) -> str:
    survey, proof = asked.survey, asked.proof
    fate, held = survey.fate(rank), asked.standings.get(rank)
    if rank in have:
        if rank in survey.failed_gpus or (fate is Fate.HELD and survey.cannot_run(rank)):
            return "holding"
        return _arrived_state(fate, have[rank], proof.bound.seq >= seq)
    if held is not None and held.completed >= seq:
        return "done"
    if proof.bound.seq >= seq:
        return "holding" if fate is Fate.STOPPED else "done"
    if rank in proof.doubted:
        return "unknown"
    if held is not None and held.entered is not None and held.entered >= seq:
        is_on_older = bool(held.fronts) and held.fronts[0].seq < seq
        if fate is Fate.SILENT:
            return "unheard"
        if is_on_older and fate in UNHEARD:
            return "unknown"
        is_blocking = is_on_older or fate in (Fate.STOPPED, Fate.GONE)
        return "holding" if is_blocking else "done"
    if held is not None and held.is_exact and fate is Fate.ALIVE:
        return "unknown" if undumped.may_be_inside(survey, rank) else "absent"
    if _may_have_left(survey, rank, have):
        return "unknown"
    if held is None and namesakes.waits_in_one(survey, asked.group, rank):
        return "unplaced"
    return _unproven(asked, rank, have)


def _arrived_state(fate: Fate, front: Entry | None, is_proven: bool) -> str:
    if fate in (Fate.STOPPED, Fate.GONE):
        return "holding"
    if fate is Fate.SILENT and not is_proven:
        return "unheard"  # its machine may be what stopped the collective
    if front is not None and front.is_started is False:
        return "unknown" if fate in UNHEARD else "holding"
    return "have"


def _may_have_left(survey: Survey, rank: int, have: dict[int, Entry | None]) -> bool:
    """Whether a rank that ended well may have done its part of a call that some leave early.

    Who contributes to a gather may be done, and past destroy_process_group, before others come.
    """
    beat = survey.beat(rank)
    if beat is None or not (beat.is_destroyed or beat.process.exit_code == 0):
        return False
    op = next((entry.op for entry in have.values() if entry is not None and entry.op), "")
    return op in op_names.ROOTED


def _unproven(asked: Members, rank: int, have: dict[int, Entry | None]) -> str:
    """No counter tells: the process's state or its stack may."""
    survey = asked.survey
    beat, fate = survey.beat(rank), survey.fate(rank)
    is_inside = fate in process.RUNNING and survey.is_inside(rank)
    if fate is Fate.HELD and _has_gone_on(asked, rank, have):
        return "unplaced" if is_inside else "unknown"
    if is_inside and not survey.stands_elsewhere(rank):
        return "unplaced"
    if fate in _UNABLE or (beat is not None and beat.is_destroyed):
        return "absent"
    if fate is Fate.ALIVE and rendezvous.has_restarted(survey, rank):
        return "absent"
    if fate is Fate.ALIVE and survey.is_outside(rank) and standing.has_probe(beat):
        return "absent"
    return "unknown"


def _has_gone_on(asked: Members, rank: int, have: dict[int, Entry | None]) -> bool:
    """Whether its peers finished calls with it long after its probe fell silent.

    Then nothing holds it: its record is gone, or is not written any more, and neither that silence
    nor its old numbers say where it is.
    """
    view, held = asked.survey.view(rank), asked.standings.get(rank)
    if view is None or view.beat is None or view.beat.beat_age_s is None:
        return False
    entered = -1 if held is None or held.entered is None else held.entered
    silent_s = view.beat.beat_age_s + view.age_s
    is_older = silent_s > clock_s(asked, have) + standing.PROBE_SILENT_S
    return asked.proof.bound.seq > entered and is_older
