"""What people are told, in words: one line with the culprit first, then a few lines of text.

Pure, and the same for every kind of channel; how a kind shows it is that kind's own. What a job can
influence is plain text here: each kind escapes it by its receiver's rules.
"""

from __future__ import annotations

import secrets
from datetime import datetime

from hangwatch_server import durations, texts
from hangwatch_server.model import ACTIVE_INCIDENTS, Incident, IncidentState, Job, Verdict
from hangwatch_server.model.alerts import BlindSpell, Channel, Message, Topic
from hangwatch_server.model.outbox import Told

_TITLE_CHARS = 250
_TEXT_CHARS = 2000
_HINTS = 3


def new_id() -> str:
    """Receivers know a repetition by it."""
    return f"msg_{secrets.token_hex(12)}"


def about_incident(incident_id: str) -> str:
    return f"incident:{incident_id}"


def about_slow(job: Job) -> str:
    """One notice for each attempt and set of stragglers."""
    return f"slow:{job.id}:{job.attempt}:{job.verdict.culprit_ranks}"[:200]


def job_of_slow(about: str) -> str:
    """Id of the job that such a notice is about."""
    return about.split(":")[1]


def about_spell(spell: BlindSpell) -> str:
    return f"monitor:{spell.id}"


def of_incident(
    topic: Topic, incident: Incident, base_url: str, now: datetime, stack: tuple[str, ...] = ()
) -> Message:
    """The message of this topic; `stack` are frames of the first culprit, innermost first."""
    return Message(
        id=new_id(),
        topic=topic,
        at=now,
        about=about_incident(incident.id),
        title=_line(_title(topic, incident, now)),
        text=_lines(_text(topic, incident, now)),
        url=f"{base_url}/incidents/{incident.id}",
        incident=incident,
        stack=tuple(_line(frame) for frame in stack),
    )


def of_slow_job(job: Job, base_url: str, now: datetime) -> Message:
    verdict = job.verdict
    what = _what(verdict.summary) or "A rank holds the others up"
    return Message(
        id=new_id(),
        topic=Topic.SLOW,
        at=now,
        about=about_slow(job),
        title=_line(f"{what} · {job.name} is slow"),
        text=_lines((f"Job {job.name}, attempt {job.attempt}.", verdict.summary, *verdict.hints)),
        url=f"{base_url}/jobs/{job.id}",
        incident=None,
    )


def of_caught_up(told: Told, job: Job, base_url: str, now: datetime) -> Message:
    """The end of a notice of stragglers, for receivers that keep it standing until then."""
    return Message(
        id=new_id(),
        topic=Topic.RESOLVED,
        at=now,
        about=told.about,
        title=_line(f"No longer: {told.title}"),
        text=_lines(
            (f"Job {job.name}, attempt {job.attempt}, is {job.state.value.replace('_', ' ')} now.",)
        ),
        url=f"{base_url}/jobs/{job.id}",
        incident=None,
    )


def of_spell(topic: Topic, spell: BlindSpell, base_url: str, now: datetime) -> Message:
    """That the monitor is blind, or sees again."""
    return Message(
        id=new_id(),
        topic=topic,
        at=now,
        about=about_spell(spell),
        title=_line(_spell_title(topic, spell)),
        text=_lines(_spell_text(topic, spell)),
        url=f"{base_url}/jobs/{spell.subject}" if spell.job_name else f"{base_url}/nodes",
        incident=None,
    )


def of_test(channel: Channel, base_url: str, now: datetime) -> Message:
    return Message(
        id=new_id(),
        topic=Topic.TEST,
        at=now,
        about=f"test:{channel.id}",
        title=_line(f"Test of the channel {channel.name}: nothing is wrong"),
        text="Somebody pressed the test button in Hangwatch. Alerts of hangs come this way.",
        url=f"{base_url}/channels",
        incident=None,
    )


def _title(topic: Topic, incident: Incident, now: datetime) -> str:
    what, job = _what(incident.summary), incident.job_name
    match topic:
        case Topic.REMINDER:
            return f"Still stuck after {_stood(incident, now)}: {what} · {job}"
        case Topic.ACKNOWLEDGED:
            return f"{incident.acknowledged_by} looks after it: {what} · {job}"
        case Topic.RESOLVED:
            return f"{_end(incident)} after {_stood(incident, now)}: {what} · {job}"
        case _:
            return f"{what} · {job}"


def _text(topic: Topic, incident: Incident, now: datetime) -> tuple[str, ...]:
    verdict = incident.verdict
    head = f"Job {incident.job_name}, attempt {incident.attempt}, {_size(verdict)}."
    match topic:
        case Topic.ACKNOWLEDGED:
            return (head, _as_found(incident), _comment(incident))
        case Topic.RESOLVED:
            return (
                head,
                f"{_end(incident)} after {_stood(incident, now)}: {incident.end_reason}.",
                f"What it was: {incident.summary}",
            )
        case Topic.REMINDER:
            return (head, _as_found(incident), _waiting(verdict), *_hints(verdict))
        case _:
            is_over = incident.state not in ACTIVE_INCIDENTS
            end = f"It is over by now: {incident.end_reason}." if is_over else ""
            return (head, incident.summary, _waiting(verdict), end, *_hints(verdict))


def _what(summary: str) -> str:
    """The first clause: who did what, without ages that are old by the time they are read."""
    return summary.partition("; ")[0].partition(". ")[0].removesuffix(".")


def _as_found(incident: Incident) -> str:
    """Its ages are those of that moment, and would read as present ones later."""
    return f"As it was found: {incident.summary}"


def _waiting(verdict: Verdict) -> str:
    return f"Waiting: ranks {verdict.waiting}." if verdict.waiting else ""


def _hints(verdict: Verdict) -> tuple[str, ...]:
    return tuple(f"• {hint}" for hint in verdict.hints[:_HINTS])


def _size(verdict: Verdict) -> str:
    count = verdict.coverage.world_size
    return f"{count} rank{'' if count == 1 else 's'}"


def _comment(incident: Incident) -> str:
    said = [event.why for event in incident.history if event.new == "acknowledged"]
    return f"{incident.acknowledged_by}: {said[-1]}" if said and said[-1] else ""


def _end(incident: Incident) -> str:
    return "Resolved" if incident.state is IncidentState.RESOLVED else "Over"


def _stood(incident: Incident, now: datetime) -> str:
    return durations.spoken(((incident.ended_at or now) - incident.opened_at).total_seconds())


def _spell_title(topic: Topic, spell: BlindSpell) -> str:
    if topic is Topic.SIGHTED and spell.end_reason:
        whom = spell.job_name or "any job"
        return f"Hangwatch waits for {whom} no longer: it was blind for {_lasted(spell)}"
    if topic is Topic.SIGHTED:
        what = f"{spell.job_name} again" if spell.job_name else "again"
        return f"Hangwatch sees {what}: it was blind for {_lasted(spell)}"
    return f"Hangwatch is blind: {spell.text}"


def _spell_text(topic: Topic, spell: BlindSpell) -> tuple[str, ...]:
    began = f"{spell.began_at:%Y-%m-%d %H:%M:%S}"
    if topic is Topic.SIGHTED:
        return (
            f"What it was: {spell.text}.",
            f"Why it is over: {spell.end_reason}." if spell.end_reason else "",
            f"From {began} to {spell.ended_at or spell.began_at:%H:%M:%S} UTC.",
            "A hang in that time may have gone unseen, or may be told late.",
        )
    return (
        f"Since {began} UTC.",
        "Until it sees again, hangs may go unseen: look at the jobs yourself.",
    )


def _lasted(spell: BlindSpell) -> str:
    end = spell.ended_at or spell.began_at
    return durations.spoken((end - spell.began_at).total_seconds())


def _line(text: str) -> str:
    """One line: what a job names itself may hold line ends and worse."""
    return texts.short(" ".join(texts.plain(text).split()), _TITLE_CHARS)


def _lines(paragraphs: tuple[str, ...]) -> str:
    plain = (" ".join(texts.plain(paragraph).split()) for paragraph in paragraphs)
    return texts.short("\n".join(line for line in plain if line), _TEXT_CHARS)
