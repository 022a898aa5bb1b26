"""The history of an incident as one list: changes of state, evidence stored, what people said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from hangwatch_server.model import CaptureSummary, Incident, IncidentEvent
from hangwatch_server.pages import words

_NEW = {
    "open": ("suspected", "suspected"),
    "confirmed": ("hung", "hung"),
    "resolved": ("resolved", "healthy"),
    "ended": ("ended", "finished"),
    "pruned": ("cleared", "healthy"),
    "acknowledged": ("acknowledged", "note"),
    "snoozed": ("snoozed", "note"),
}
_KINDS = {"stacks": "stacks", "recorder": "last calls"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line; `mark` names its symbol."""

    at: datetime
    what: str
    text: str
    by: str
    mark: str
    capture: str = ""  # the newest one it tells of


def of_incident(incident: Incident, captures: Sequence[CaptureSummary]) -> tuple[Item, ...]:
    """Oldest first; captures that follow each other are one line."""
    items = [
        *(_event(event) for event in incident.history),
        *(
            Item(at=note.at, what="comment", text=note.text, by=note.by, mark="note")
            for note in incident.comments
        ),
        *(_evidence(capture) for capture in captures if capture.stored_at is not None),
    ]
    return tuple(_joined(sorted(items, key=lambda item: item.at)))


def _event(event: IncidentEvent) -> Item:
    is_change = event.old == event.new
    what, mark = _NEW.get(event.new, (event.new.replace("_", " "), "note"))
    return Item(
        at=event.at,
        what="changed" if is_change else what,
        text=event.why,
        by=event.by,
        mark="note" if is_change else mark,
    )


def _evidence(capture: CaptureSummary) -> Item:
    assert capture.stored_at is not None  # the caller has looked
    kinds = " and ".join(_KINDS.get(kind, kind) for kind in capture.kinds)
    missing = f"; {words.plural(capture.missing, 'rank')} without" if capture.missing else ""
    return Item(
        at=capture.stored_at,
        what="evidence stored",
        text=f"{kinds} of {words.ranks_named(capture.ranks)}{missing}",
        by=capture.requested_by if capture.requested_by != "hangwatch" else "",
        mark="evidence",
        capture=capture.id,
    )


def _joined(items: Iterable[Item]) -> Iterable[Item]:
    run: list[Item] = []
    for item in items:
        if run and (item.mark != "evidence" or item.by != run[-1].by):
            yield _one(run)
            run = []
        if item.mark == "evidence":
            run.append(item)
        else:
            yield item
    if run:
        yield _one(run)


def _one(run: Sequence[Item]) -> Item:
    last = run[-1]
    if len(run) == 1:
        return last
    texts = list(dict.fromkeys(item.text for item in run))
    told = "; ".join(texts[:3]) + ("; …" if len(texts) > 3 else "")
    return Item(
        at=last.at,
        what="evidence stored",
        text=f"{len(run)} captures: {told}",
        by=last.by,
        mark="evidence",
        capture=last.capture,
    )
