"""Pending collectives by NCCL RAS, for ranks of which no probe tells.

RAS counts what each member's process has launched, per kind of op, and nothing of what finished. So
a member behind the others, the same in two answers, is what the others wait for; where all counts
agree nothing follows. Of communicators whose members all have a probe, the probe's word stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hangwatch_agent.wire import Entry, RasState
from hangwatch_server import ranges
from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import RasMember, RasView

MIN_ANSWERS = 2
MIN_STILL_S = 2.0  # hard evidence needs as long
_OUT_OF_REACH = frozenset({RasState.UNRESPONSIVE, RasState.DEAD})
_GONE_ON = frozenset({RasState.LEFT, RasState.FINALIZE, RasState.ABORT})
_MAX_SHOWN = 3


def pending(survey: Survey, known: Iterable[PendingOp]) -> list[PendingOp]:
    """One operation per communicator that stands still; `known` are those the probes tell of."""
    told = {op.gid for op in known}
    return [
        op
        for view in survey.snapshot.ras
        if view.gid not in told and _stands_still(survey, view)
        for op in _of_view(survey, view)
    ]


def refine(survey: Survey, known: Iterable[PendingOp]) -> None:
    """Let RAS say of a probed operation's unknown members whether they are behind."""
    views = {view.gid: view for view in survey.snapshot.ras if _is_repeated(view)}
    for op in known:
        view = views.get(op.gid)
        if view is None or not op.unknown or op.form is not Form.COLLECTIVE:
            continue
        behind = set(_behind(view)).intersection(op.unknown)
        if behind:
            op.absent = tuple(sorted((*op.absent, *behind)))
            op.unknown = tuple(rank for rank in op.unknown if rank not in behind)


def errors(survey: Survey, rank: int) -> str:
    """NCCL's asynchronous error on this rank, "" for none."""
    for view in survey.snapshot.ras:
        for member in view.members:
            if member.rank == rank and member.error:
                return member.error
    return ""


def _is_repeated(view: RasView) -> bool:
    return view.same_answers >= MIN_ANSWERS and view.unchanged_s >= MIN_STILL_S


def _stands_still(survey: Survey, view: RasView) -> bool:
    if not _is_repeated(view):
        return False
    return not all(standing.has_probe(survey.beat(member.rank)) for member in view.members)


def _of_view(survey: Survey, view: RasView) -> Iterator[PendingOp]:
    counted = [member for member in view.members if member.counts]
    lost = [member for member in view.members if member.state in _OUT_OF_REACH]
    ahead = _ahead(counted)
    behind = [rank for rank in _behind(view) if rank not in ahead]
    if not ahead or not (behind or lost or _is_mixed(counted)):
        return
    op, seq = _differing_op(view, counted)
    kinds = dict.fromkeys(ahead, op)
    if _is_mixed(counted):
        kinds, seq = _kinds(view, counted), max(sum(member.counts) for member in counted)
    dead = {member.rank for member in lost if member.state is RasState.DEAD}
    yield PendingOp(
        form=Form.COLLECTIVE,
        op=op,
        gid=view.gid,
        seq=seq,
        have={rank: Entry(seq=seq or 0, op=kinds[rank], is_retired=False) for rank in ahead},
        absent=tuple(sorted({*behind, *dead})),
        unknown=tuple(sorted({member.rank for member in lost} - dead)),
        stalled_s=view.unchanged_s,
        source=_words(view, counted, lost),
    )


def _is_mixed(counted: list[RasMember]) -> bool:
    """As many calls, but of different kinds: somebody called something else."""
    most = max((sum(member.counts) for member in counted), default=0)
    return len({member.counts for member in counted if sum(member.counts) == most}) > 1


def _kinds(view: RasView, counted: list[RasMember]) -> dict[int, str]:
    """Per member the kind of op that it has launched more often than another member has."""
    least = [min(counts) for counts in zip(*(member.counts for member in counted), strict=True)]
    return {
        member.rank: next(
            (
                name
                for name, count, low in zip(view.ops, member.counts, least, strict=True)
                if count > low
            ),
            "collective",
        )
        for member in counted
    }


def _ahead(counted: list[RasMember]) -> list[int]:
    """Members that have launched most, and still belong to the communicator."""
    most = max((sum(member.counts) for member in counted), default=0)
    return [
        member.rank
        for member in counted
        if sum(member.counts) == most and member.state not in _GONE_ON
    ]


def _behind(view: RasView) -> list[int]:
    """Members that have launched less than the others, or have left where others still wait."""
    counted = [member for member in view.members if member.counts]
    most = max((sum(member.counts) for member in counted), default=0)
    less = [member.rank for member in counted if sum(member.counts) < most]
    left = [member.rank for member in view.members if member.state is RasState.LEFT]
    return sorted({*less, *left})


def _differing_op(view: RasView, counted: list[RasMember]) -> tuple[str, int | None]:
    """The kind of op that only the members ahead have launched, and its count there."""
    found = [
        (name, max(counts))
        for name, counts in zip(
            view.ops, zip(*(member.counts for member in counted), strict=True), strict=True
        )
        if min(counts) != max(counts)
    ]
    if len(found) != 1:
        return "collective", None
    name, seq = found[0]
    return ("collective", None) if name == "collective" else (name, seq)


def _words(view: RasView, counted: list[RasMember], lost: list[RasMember]) -> str:
    """What RAS says, in one sentence for people."""
    by_count: dict[int, list[int]] = {}
    for member in counted:
        by_count.setdefault(sum(member.counts), []).append(member.rank)
    shown = sorted(by_count.items(), key=lambda item: (-item[0], item[1]))[:_MAX_SHOWN]
    parts = [
        f"{_named(ranks)} {'has' if len(ranks) == 1 else 'have'} launched {count} calls"
        for count, ranks in shown
    ]
    if lost:
        verb = "does" if len(lost) == 1 else "do"
        parts.append(f"{_named([member.rank for member in lost])} {verb} not answer it")
    return (
        f"NCCL RAS on communicator {view.hash[:8]}, the same in {view.same_answers} answers: "
        f"{'; '.join(parts)}. It counts launches only, so this is less sure than a probe's word."
    )


def _named(ranks: list[int]) -> str:
    return f"rank{'' if len(ranks) == 1 else 's'} {ranges.text(ranks)}"
