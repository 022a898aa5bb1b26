"""PagerDuty by its Events API v2: trigger, acknowledge and resolve of one incident.

https://developer.pagerduty.com/docs/events-api-v2-overview
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hangwatch_server import texts
from hangwatch_server.alerts.channels import answers
from hangwatch_server.alerts.channels.base import Accepted, Kind, Outcome, Refused, TryAgain
from hangwatch_server.alerts.channels.fields import BadChannelError, Field, host_of, is_address
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import Message, Topic

API = "https://events.pagerduty.com"
MAX_SUMMARY_CHARS, MAX_KEY_CHARS = 1024, 255
MAX_DETAIL_CHARS = 4000
SEVERITIES = ("critical", "error", "warning", "info")
Json = dict[str, Any]  # a JSON object: its values are of any of JSON's types
_KEY = re.compile(r"[A-Za-z0-9]{32}")
_ACTIONS = {
    Topic.ACKNOWLEDGED: "acknowledge",
    Topic.RESOLVED: "resolve",
    Topic.SIGHTED: "resolve",
}


def _is_routing_key(value: str) -> None:
    if not _KEY.fullmatch(value):
        raise BadChannelError("is not a routing key: one has 32 letters and digits")


FIELDS = (
    Field(
        name="routing_key",
        label="Routing key",
        help="of an integration Events API v2 of the service, or of an event orchestration",
        example="32 letters and digits",
        is_secret=True,
        is_required=True,
        check=_is_routing_key,
    ),
    Field(
        name="severity",
        label="Severity",
        help="of a hang; critical where it is left empty",
        choices=SEVERITIES,
    ),
    Field(
        name="api_url",
        label="API address",
        help="https://events.eu.pagerduty.com for accounts in the EU; empty for all others",
        example=API,
        check=is_address,
    ),
)


class PagerDuty:
    """Sends events; those about the same incident have the same dedup key."""

    def __init__(self, routing_key: str, severity: str, api_url: str, outgoing: Outgoing) -> None:
        self._key, self._severity = routing_key, severity
        self._url = f"{api_url.rstrip('/')}/v2/enqueue"
        self._outgoing = outgoing

    async def send(self, message: Message, thread: str) -> Outcome:
        found = await self._event(message, _ACTIONS.get(message.topic, "trigger"))
        if message.topic is Topic.TEST and isinstance(found, Accepted):
            # A test must not leave an incident behind that somebody has to close.
            found = await self._event(message, "resolve")
        return found

    async def _event(self, message: Message, action: str) -> Outcome:
        event = {
            "routing_key": self._key,
            "event_action": action,
            "dedup_key": message.about[:MAX_KEY_CHARS],
            "client": "Hangwatch",
        }
        if message.url.startswith("http"):
            event |= {"client_url": message.url}
        body = json.dumps(event | _payload(message, self._severity)).encode()
        headers = {"content-type": "application/json"}
        answer = await answers.of_request(self._outgoing.post(self._url, body, headers))
        if isinstance(answer, TryAgain):
            return answer
        if answer.status == 400:
            told = answers.words(answer).removeprefix("the receiver answered 400")
            return Refused(error=f"PagerDuty does not accept the event{told}", status=400)
        return answers.outcome(answer)


def _payload(message: Message, severity: str) -> Json:
    incident = message.incident
    payload: Json = {
        "summary": _text(message.title, MAX_SUMMARY_CHARS),
        "source": "hangwatch",
        "severity": severity if incident is not None else "warning",
        "timestamp": message.at.isoformat(),
        "custom_details": {"text": _text(message.text, MAX_DETAIL_CHARS)},
    }
    if message.topic is Topic.TEST:
        payload["severity"] = "info"
    if incident is None:
        return {"payload": payload}
    payload |= {
        "source": _text(",".join(incident.culprit_nodes) or incident.job_name, 200),
        "component": _text(incident.job_name, 200),
        "class": incident.kind.value,
    }
    payload["custom_details"] |= {
        "culprits": _text(incident.culprit_ranks, 400),
        "waiting": _text(incident.verdict.waiting, 400),
        "stack": [_text(line, 200) for line in message.stack],
        "hints": [_text(hint, 600) for hint in incident.verdict.hints[:3]],
    }
    return {"payload": payload}


def _text(text: str, limit: int) -> str:
    return texts.short(texts.plain(text), limit)


def _make(options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing) -> PagerDuty:
    return PagerDuty(
        routing_key=secrets["routing_key"],
        severity=options.get("severity") or "critical",
        api_url=options.get("api_url") or API,
        outgoing=outgoing,
    )


KIND = Kind(
    label="PagerDuty",
    about="Triggers an incident in PagerDuty; acknowledging and the end here go there as well.",
    fields=FIELDS,
    make=_make,
    target=lambda options, secrets: host_of(options.get("api_url") or API),
)
