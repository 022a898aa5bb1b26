"""A message as the JSON document that webhooks carry: bounded, and the same at every attempt."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from hangwatch_server.model.alerts import Message, Topic
from hangwatch_server.model.records import Incident

MAX_BYTES = 20_000  # Standard Webhooks: payloads under 20 kB
TYPES = {
    Topic.OPENED: "incident.opened",
    Topic.REMINDER: "incident.reminder",
    Topic.ACKNOWLEDGED: "incident.acknowledged",
    Topic.RESOLVED: "incident.resolved",
    Topic.SLOW: "job.slow",
    Topic.BLIND: "monitor.blind",
    Topic.SIGHTED: "monitor.sighted",
    Topic.TEST: "channel.test",
}
CAUGHT_UP = "job.caught_up"  # the end of a job.slow
Json = dict[str, Any]  # a JSON object: its values are of any of JSON's types
# What is left out first when all is too long: what says least, and stands in the API as well.
_OF_INCIDENT = ("comments", "history", "captures")
_OF_VERDICT = ("edges", "evidence", "path", "cycle", "causes", "sides", "hints", "culprits")
_SHORT_CHARS = 300
_incident = TypeAdapter(Incident)


def encode(message: Message) -> bytes:
    """UTF-8 JSON of at most MAX_BYTES; `data.cut` names what was left out for that."""
    document = _document(message)
    for name in (*_OF_INCIDENT, *_OF_VERDICT):
        if _size(document) <= MAX_BYTES:
            break
        _cut(document["data"], name)
    if _size(document) > MAX_BYTES:
        document["data"]["cut"].append("texts")
        document["data"] = _shortened(document["data"])
    return _bytes(document)


def _document(message: Message) -> Json:
    incident = message.incident
    data: Json = {
        "about": message.about,
        "title": message.title,
        "text": message.text,
        "url": message.url,
        "stack": list(message.stack),
        "incident": None,
        "cut": [],
    }
    if incident is not None:
        data["incident"] = _incident.dump_python(incident, mode="json", by_alias=True)
    is_notice = message.topic is Topic.RESOLVED and incident is None
    kind = CAUGHT_UP if is_notice else TYPES[message.topic]
    return {"type": kind, "timestamp": message.at.isoformat(), "data": data}


def _cut(data: Json, name: str) -> None:
    incident = data["incident"]
    if incident is None:
        return
    holder = incident if name in _OF_INCIDENT else incident["verdict"]
    if holder[name]:
        holder[name] = []
        data["cut"].append(name)


def _shortened(value: Any) -> Any:  # JSON of any type
    """Every text within, cut short."""
    if isinstance(value, str):
        return value if len(value) <= _SHORT_CHARS else value[: _SHORT_CHARS - 1] + "…"
    if isinstance(value, list):
        return [_shortened(item) for item in value[:20]]
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    return value


def _size(document: Json) -> int:
    return len(_bytes(document))


def _bytes(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", errors="replace"
    )
