"""Whether the monitor sees enough to judge: the watch over the watcher. Pure: time is passed in.

What is wrong at a moment is a symptom; one that lasts is a blind spell, which people are told of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hangwatch_server.model import State
from hangwatch_server.model.alerts import BlindCause, BlindSpell
from hangwatch_server.model.outbox import SeenJob

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What can be known of the monitor at one moment."""

    server: str  # name of this run of this server, its machine's before the first colon
    living: frozenset[str]  # names of all servers that run now
    agents: int  # that are heard
    jobs: Sequence[SeenJob]  # that run, or ran when they were last heard of
    failing: Sequence[str]  # the server's own tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """Something that makes the monitor blind, if it lasts."""

    cause: BlindCause
    subject: str
    job_name: str = ""
    text: str

    @property
    def key(self) -> tuple[BlindCause, str]:
        return self.cause, self.subject


def symptoms(facts: Facts, share: float) -> tuple[Symptom, ...]:
    """What is wrong now; without any agent, that says all of the jobs too."""
    found = []
    if facts.failing:
        machine = facts.server.partition(":")[0]
        text = f"its own tasks fail again and again on {machine}: {', '.join(facts.failing)}"
        found.append(Symptom(cause=BlindCause.SERVER, subject=facts.server, text=text))
    if facts.agents == 0:
        if facts.jobs:
            text = f"no agent is heard, and {_named(facts.jobs)} ran when one was"
            found.append(Symptom(cause=BlindCause.NO_AGENT, subject="", text=text))
        return tuple(found)
    return (*found, *(_of_job(job) for job in facts.jobs if _is_out_of_sight(job, share)))


def still_since(
    since_s: Mapping[tuple[BlindCause, str], float], present: Iterable[Symptom], now_s: float
) -> dict[tuple[BlindCause, str], float]:
    """Since when each symptom has been there without a break."""
    return {symptom.key: since_s.get(symptom.key, now_s) for symptom in present}


def is_over(spell: BlindSpell, facts: Facts, present: Iterable[Symptom]) -> bool:
    """Whether a spell has ended; where nothing is heard, nothing is known to be better."""
    match spell.cause:
        case BlindCause.NO_AGENT:
            return facts.agents > 0 or not facts.jobs
        case BlindCause.SERVER:
            # Of one that runs no more nothing can be said, and nothing need be.
            is_known = spell.subject == facts.server or spell.subject not in facts.living
        case BlindCause.COVERAGE:
            is_known = facts.agents > 0
        case BlindCause.DATABASE:
            is_known = True
    return is_known and (spell.cause, spell.subject) not in {one.key for one in present}


def why_over(spell: BlindSpell, facts: Facts, forgotten_after: str) -> str:
    """Why nothing is waited for any more, though nothing is seen; "" where it is seen again."""
    if spell.cause is BlindCause.NO_AGENT and facts.agents == 0:
        return f"no agent is heard, nor was any job for {forgotten_after}: none is waited for"
    if spell.cause is BlindCause.COVERAGE and spell.subject not in {job.id for job in facts.jobs}:
        return f"it has ended, or nothing was heard of it for {forgotten_after}"
    if spell.cause is BlindCause.SERVER and spell.subject != facts.server:
        return "that server runs no more"
    return ""


def away(seconds: str) -> str:
    return f"the database could not be reached for {seconds}"


def _is_out_of_sight(job: SeenJob, share: float) -> bool:
    """One that starts has its own limits for ranks that do not come."""
    return job.state is not State.STARTING and job.reporting < share * job.world_size


def _of_job(job: SeenJob) -> Symptom:
    text = f"only {job.reporting} of {job.world_size} ranks of {job.name} report"
    return Symptom(cause=BlindCause.COVERAGE, subject=job.id, job_name=job.name, text=text)


def _named(jobs: Sequence[SeenJob]) -> str:
    names = ", ".join(job.name for job in jobs[:_NAMED])
    more = len(jobs) - _NAMED
    return f"{names} and {more} more" if more > 0 else names
