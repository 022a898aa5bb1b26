"""The sentence on top of a page and the title of its tab: is anything stuck, and what?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hangwatch_server import ranges
from hangwatch_server.model import ACTIVE_INCIDENTS, Condition, Incident, Job, Kind, State, Verdict
from hangwatch_server.pages import words

_TROUBLES = (
    (State.HUNG, "stuck"),
    (State.FAILED, "failed"),
    (State.SUSPECTED, "suspected of hanging"),
    (State.SLOW, "slow"),
    (State.UNKNOWN, "out of sight"),
)
_CALM = {
    State.HEALTHY: "is making progress",
    State.STARTING: "is starting",
    State.EXPECTED_WAIT: "waits, as expected",
}
_NAME_CHARS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """`state` gives the mark; `lead` is the sentence; `rest` goes on about the worst job."""

    state: State
    lead: str
    rest: str
    job: Job | None
    title: str  # of the tab


def of_jobs(jobs: Sequence[Job], *, has_earlier: bool = False) -> Headline:
    """Whether anything is stuck now: `jobs` are those that run or just ended, worst first."""
    live = [job for job in jobs if job.state is not State.FINISHED]
    for state, word in _TROUBLES:
        some = [job for job in live if job.state is state]
        if some:
            return _headline(some[0], _share(some, live, word))
    if not live:
        lead = "No job is running." if jobs or has_earlier else "No job yet."
        return Headline(
            state=State.FINISHED, lead=lead, rest="", job=None, title=f"{lead[:-1]} · Hangwatch"
        )
    state, lead = _calm(live)
    return Headline(state=state, lead=lead, rest="", job=None, title=_title(state, lead))


def line(verdict: Verdict) -> tuple[str, str]:
    """A verdict in one line: what happened, and what its one culprit does ("" if not known)."""
    what = verdict.summary.partition("; ")[0].partition(". ")[0].removesuffix(".")
    if len(verdict.culprits) != 1 or verdict.culprits[0].condition is Condition.UNKNOWN:
        return what, ""
    return what, words.condition(verdict.culprits[0].condition)


def of_job(job: Job) -> str:
    """Tab title of a job page: state first, since a tab shows few characters."""
    name = words.plain(words.short(job.name, _NAME_CHARS))
    return f"{words.GLYPHS[job.state]} {words.state(job.state)} · {name}"


@dataclass(frozen=True, slots=True)
class _Verbs:
    """What is said of a hang that lasts, or of one that is over."""

    hold: str
    holds: str
    wait: str
    waits: str
    finishes: str
    stands: str
    has: str


_LASTS = _Verbs(
    "hold",
    "holds",
    "wait",
    "waits",
    "finishes",
    "no rank moves, and none is in a collective",
    "has",
)
_OVER = _Verbs(
    "held",
    "held",
    "waited",
    "waited",
    "finished",
    "no rank moved, and none was in a collective",
    "had",
)


def of_incident(incident: Incident) -> str:
    """`rank 5 holds up 511 ranks`: who against whom, never merely `hang detected`."""
    return of_verdict(incident.verdict, is_over=is_over(incident))


def is_over(incident: Incident) -> bool:
    return incident.state not in ACTIVE_INCIDENTS


def of_verdict(verdict: Verdict, *, is_over: bool = False) -> str:
    verbs = _OVER if is_over else _LASTS
    waiting = words.plural(words.count(verdict.waiting), "rank")
    if verdict.causes and verdict.culprit_ranks:
        return f"{1 + len(verdict.causes)} separate causes {verbs.hold} up {waiting}"
    if verdict.kind in _OF_KIND:
        return _OF_KIND[verdict.kind](verdict, verbs)
    if verdict.kind is Kind.STALLED_COLLECTIVE and not verdict.culprit_ranks:
        return _of_stalled(verdict, verbs)
    if verdict.culprit_ranks and verdict.waiting:
        return f"{_who(verdict)} {_holds(verdict, verbs)} up {waiting}"
    if verdict.kind is Kind.NONE and verdict.state is State.FAILED:
        what, _ = line(verdict)
        return what[:1].lower() + what[1:]
    return words.kind(verdict.kind)


def call(verdict: Verdict) -> str:
    """`all_reduce #1042 of dp-1`: the call that the ranks wait in, "" where none is known."""
    if not verdict.op:
        return ""
    number = "" if verdict.seq is None else f" #{verdict.seq}"
    if verdict.group is None:
        return f"{verdict.op}{number}"
    group = words.group(verdict.group.name, "")
    return f"{verdict.op}{number} of {'the ' if group == 'default group' else ''}{group}"


def beside(incident: Incident) -> str:
    """The call, where the heading of the incident does not name it already."""
    is_named = incident.verdict.op in of_incident(incident)
    return "" if is_named else call(incident.verdict)


def _of_mismatch(verdict: Verdict, _: _Verbs) -> str:
    place = "the same place" if verdict.seq is None else f"#{verdict.seq}"
    return f"ranks made different calls at {place}"


def _of_deadlock(verdict: Verdict, verbs: _Verbs) -> str:
    ranks = words.plural(words.count(verdict.culprit_ranks), "rank")
    return f"{ranks} {verbs.wait} for each other"


def _of_rendezvous(verdict: Verdict, _: _Verbs) -> str:
    return f"{_who(verdict)} never came to the rendezvous"


_OF_KIND: dict[Kind, Callable[[Verdict, _Verbs], str]] = {
    Kind.MISMATCH: _of_mismatch,
    Kind.DEADLOCK: _of_deadlock,
    Kind.INCOMPLETE_RENDEZVOUS: _of_rendezvous,
    Kind.NO_PROGRESS: lambda _, verbs: verbs.stands,
}


def _of_stalled(verdict: Verdict, verbs: _Verbs) -> str:
    if is_seen_only(verdict):
        return f"every rank seen {verbs.waits} inside a collective"
    where = f"{verdict.op or 'a collective'}{'' if verdict.seq is None else f' #{verdict.seq}'}"
    members = verdict.group.ranks if verdict.group is not None else verdict.waiting
    if words.count(verdict.waiting) < words.count(members):
        return f"no rank is known to be missing from {where}, none {verbs.finishes}"
    return f"all ranks entered {where}, none {verbs.finishes}"


def _who(verdict: Verdict) -> str:
    return words.ranks_named(verdict.culprit_ranks) if verdict.culprit_ranks else "no rank"


def _holds(verdict: Verdict, verbs: _Verbs) -> str:
    return verbs.holds if words.count(verdict.culprit_ranks) == 1 else verbs.hold


def is_seen_only(verdict: Verdict) -> bool:
    """Whether all wait inside by their stacks alone, which tell neither group nor call."""
    return (
        verdict.kind is Kind.STALLED_COLLECTIVE
        and verdict.group is None
        and verdict.seq is None
        and not verdict.culprit_ranks
    )


def of_culprits(verdict: Verdict, *, is_over: bool = False) -> str:
    """What the culprits have in common: not all that hold others up have failed to arrive."""
    verbs = _OVER if is_over else _LASTS
    if verdict.kind is Kind.MISMATCH:
        return "different calls"
    if verdict.kind is Kind.DEADLOCK:
        return f"{verbs.wait} for each other"
    nearest = ranges.parse(verdict.edges[0].ranks) if verdict.edges else ()
    named = ranges.parse(verdict.culprit_ranks) if verdict.culprit_ranks else ()
    has_entered = verdict.kind is Kind.STALLED_COLLECTIVE or not set(named).isdisjoint(nearest)
    return f"{verbs.holds} the others up" if has_entered and named else f"{verbs.has} not arrived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """One side of an incident: how many ranks, and which."""

    name: str
    ranks: str
    count: int
    tone: str  # culprit, waiting, silent


def tally(verdict: Verdict, *, is_over: bool = False) -> tuple[Tally, ...]:
    """Who holds up against who waits, the smaller set first; then who is not heard at all."""
    sides = [
        Tally(name=name, ranks=text, count=words.count(text), tone=tone)
        for name, text, tone in (
            (of_culprits(verdict, is_over=is_over), verdict.culprit_ranks, "culprit"),
            ("waited" if is_over else "waiting", verdict.waiting, "waiting"),
        )
        if text
    ]
    sides.sort(key=lambda side: side.count)
    silent = verdict.coverage.silent
    if silent:
        count = words.count(silent)
        sides.append(Tally(name="not reporting", ranks=silent, count=count, tone="silent"))
    return tuple(sides)


def _headline(worst: Job, lead: str) -> Headline:
    return Headline(
        state=worst.state,
        lead=lead,
        rest=worst.verdict.summary,
        job=worst,
        title=_title(worst.state, lead),
    )


def _title(state: State, lead: str) -> str:
    """Of the tab: its mark first, as a tab shows few characters."""
    return f"{words.GLYPHS[state]} {lead.removesuffix('.')} · Hangwatch"


def _share(some: Sequence[Job], live: Sequence[Job], word: str) -> str:
    verb = "" if word == "failed" else "is " if len(some) == 1 else "are "
    if len(live) == 1:
        return f"The one job {verb}{word}."
    return f"{len(some)} of {len(live)} jobs {verb}{word}."


def _calm(live: Sequence[Job]) -> tuple[State, str]:
    """Only jobs that do make progress are said to."""
    if len(live) == 1:
        state = live[0].state
        return state, f"The one job {_CALM.get(state, 'is not stuck')}."
    if all(job.state is State.HEALTHY for job in live):
        return State.HEALTHY, f"All {len(live)} jobs are making progress."
    return State.HEALTHY, "No job is stuck."
