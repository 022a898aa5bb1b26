"""Prometheus Alertmanager: a hang as an alert that fires until it is resolved.

An alert is known by its labels alone, so they must not change while it lasts, though kind and
culprits of an incident may: the labels of the first message are kept as the thread of those that
follow. https://prometheus.io/docs/alerting/latest/clients/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

from hangwatch_server import texts
from hangwatch_server.alerts.channels import answers
from hangwatch_server.alerts.channels.base import Accepted, Kind, Outcome, TryAgain
from hangwatch_server.alerts.channels.fields import Field, host_of, is_address
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import Message, Topic

# Without an end, Alertmanager takes an alert for resolved five minutes after it was last sent.
# What still stands is sent again before this one: see `planning.RENEWED_AFTER`.
LASTS = timedelta(hours=24)
MAX_LABEL_CHARS = 200
MAX_TEXT_CHARS = 4000
_NAMES = {Topic.BLIND: "HangwatchBlind", Topic.SIGHTED: "HangwatchBlind", Topic.SLOW: "JobSlow"}
_OVER = (Topic.RESOLVED, Topic.SIGHTED)
Labels = dict[str, str]

FIELDS = (
    Field(
        name="url",
        label="Alertmanager",
        help="its address without a path; inside your network it must be in outgoing_allow",
        example="http://alertmanager.internal:9093",
        is_required=True,
        check=is_address,
    ),
    Field(
        name="severity",
        label="Severity",
        help="label `severity` of a hang, for your routes; critical where it is left empty",
        example="critical",
    ),
    Field(
        name="authorization",
        label="Authorization header",
        help="where a proxy in front of Alertmanager asks for one",
        example="Basic …",
        is_secret=True,
    ),
)


class Alertmanager:
    """Posts one alert, firing or over."""

    def __init__(self, url: str, severity: str, authorization: str, outgoing: Outgoing) -> None:
        self._url = f"{url.rstrip('/').removesuffix('/api/v2/alerts')}/api/v2/alerts"
        self._severity, self._authorization = severity, authorization
        self._outgoing = outgoing

    async def send(self, message: Message, thread: str) -> Outcome:
        labels = kept_labels(thread) or labels_of(message, self._severity)
        body = json.dumps([alert(message, labels)]).encode()
        headers = {"content-type": "application/json"}
        if self._authorization:
            headers["authorization"] = self._authorization
        answer = await answers.of_request(self._outgoing.post(self._url, body, headers))
        if isinstance(answer, TryAgain):
            return answer
        found = answers.outcome(answer)
        if isinstance(found, Accepted):
            return Accepted(status=found.status, thread=json.dumps(labels))
        return found


def labels_of(message: Message, severity: str) -> Labels:
    incident = message.incident
    if incident is None:
        name = _NAMES.get(message.topic, "HangwatchTest")
        return {"alertname": name, "about": message.about, "severity": "warning"}
    conditions = {culprit.condition.value for culprit in incident.verdict.culprits}
    return {
        "alertname": "HangwatchHang",
        "incident": incident.id,
        "job": _label(incident.job_name),
        "attempt": str(incident.attempt),
        "kind": incident.kind.value,
        "condition": _label(",".join(sorted(conditions))),
        "node": _label(",".join(incident.culprit_nodes)),
        "severity": severity,
    }


def kept_labels(thread: str) -> Labels:
    try:
        kept = json.loads(thread) if thread else {}
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in kept.items()} if isinstance(kept, dict) else {}


def alert(message: Message, labels: Labels) -> dict[str, object]:
    incident = message.incident
    began = incident.confirmed_at or incident.opened_at if incident is not None else message.at
    # A test is over as it begins: it shows the way, and stands on no list afterwards.
    is_over = message.topic in (*_OVER, Topic.TEST)
    ends = max(message.at, began + timedelta(seconds=1)) if is_over else message.at + LASTS
    annotations = {
        "summary": _text(message.title),
        "description": _text(message.text),
        "acknowledged_by": _label(incident.acknowledged_by if incident is not None else ""),
    }
    found: dict[str, object] = {
        "labels": labels,
        "annotations": {name: value for name, value in annotations.items() if value},
        "startsAt": began.isoformat(),
        "endsAt": ends.isoformat(),
    }
    return found | {"generatorURL": message.url} if message.url.startswith("http") else found


def _label(text: str) -> str:
    return texts.short(texts.plain(text).replace("\n", " "), MAX_LABEL_CHARS)


def _text(text: str) -> str:
    return texts.short(texts.plain(text), MAX_TEXT_CHARS)


def _make(
    options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing
) -> Alertmanager:
    return Alertmanager(
        url=options["url"],
        severity=options.get("severity") or "critical",
        authorization=secrets.get("authorization", ""),
        outgoing=outgoing,
    )


KIND = Kind(
    label="Alertmanager",
    about="A Prometheus alert with job, kind and node as labels, which fires until the hang ends.",
    fields=FIELDS,
    make=_make,
    target=lambda options, secrets: host_of(options.get("url", "")),
)
