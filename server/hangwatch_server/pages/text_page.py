"""A job and an incident as plain text: for terminals, chats and bug reports. No markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hangwatch_server.model import GroupRow, Incident, Job, PathStep, Verdict
from hangwatch_server.pages import headline, words

_NAME_CHARS = 120


def of_job(job: Job, groups: Sequence[GroupRow]) -> str:
    lines = [
        f"{words.GLYPHS[job.state]} {words.state(job.state)}  {_name(job.name)}  "
        f"attempt {job.attempt}  {job.reporting}/{job.world_size} ranks reporting",
        *_verdict(job.verdict),
        "",
        "GROUPS",
        *(_group(group) for group in groups),
    ]
    return _text(lines)


def of_incident(incident: Incident, stacks: str, address: str = "") -> str:
    """`address` is that of its page, for whoever reads the text elsewhere."""
    lines = [
        f"{_name(incident.job_name)}: {headline.of_incident(incident)}",
        f"incident {incident.id}  {words.incident_state(incident.state)}  "
        f"opened {words.clock(incident.opened_at)}",
        *([address] if address else []),
        *_verdict(incident.verdict),
        "",
        "HISTORY",
        *(
            f"  {words.clock(event.at)}  {event.new}  {event.why}"
            + (f"  (by {event.by})" if event.by else "")
            for event in incident.history
        ),
    ]
    if stacks:
        lines += ["", "STACKS", stacks]
    return _text(lines)


def _verdict(verdict: Verdict) -> Iterable[str]:
    yield verdict.summary
    yield (
        f"kind {verdict.kind}  confidence {verdict.confidence:.0%}  "
        f"coverage {verdict.coverage.reporting}/{verdict.coverage.world_size}"
    )
    if verdict.culprits:
        yield ""
        yield f"{headline.of_culprits(verdict).upper()}  {verdict.culprit_ranks}"
        for culprit in verdict.culprits:
            where = f"  {culprit.where}" if culprit.where else ""
            detail = f"  ({culprit.detail})" if culprit.detail else ""
            yield (
                f"  rank {culprit.rank}  {culprit.node}  pid {culprit.pid or 'unknown'}  "
                f"{words.condition(culprit.condition)}{where}{detail}"
            )
    yield from _list("CALLS", (f"rank {side.ranks}: {side.call}" for side in verdict.sides))
    if verdict.waiting:
        yield f"WAITING  {verdict.waiting}"
    yield from _list("PATH", (_step(step) for step in verdict.path))
    yield from _list("EVIDENCE", (item.text for item in verdict.evidence))
    yield from _list("WHAT TO DO", verdict.hints)
    yield from _list("LIMITS", [words.limits(verdict.limits)] if verdict.limits.why else ())


def _step(step: PathStep) -> str:
    target = f" for {', '.join(str(rank) for rank in step.for_)}" if step.for_ else ""
    return f"rank {step.rank}: {step.waits_in}{target}"


def _group(group: GroupRow) -> str:
    at = "-" if group.at is None else f"#{group.at}"
    behind = f"  behind {group.behind}" if group.behind else ""
    name = _name(words.group(group.name, group.description))
    return f"  {name}  size {group.size}  at {at}  {group.op}{behind}"


def _list(heading: str, items: Iterable[str]) -> list[str]:
    found = [f"  {item}" for item in items]
    return ["", heading, *found] if found else []


def _name(text: str) -> str:
    return words.plain(words.short(text, _NAME_CHARS)).replace("\n", " ")


def _text(lines: Iterable[str]) -> str:
    return words.plain("\n".join(lines)) + "\n"
