"""The plain webhook: JSON, signed as Standard Webhooks say.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping

from hangwatch_server.alerts.channels import answers, payload
from hangwatch_server.alerts.channels.base import Kind, Outcome, TryAgain
from hangwatch_server.alerts.channels.fields import (
    Field,
    host_of,
    is_address,
    is_signing_key,
    key_bytes,
)
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import Message

FIELDS = (
    Field(
        name="url",
        label="Address",
        help="where the message is posted; lists show its host alone, as addresses often hold keys",
        example="https://hooks.example.org/hangwatch",
        is_secret=True,
        is_required=True,
        check=is_address,
    ),
    Field(
        name="signing_key",
        label="Signing key",
        help="the receiver checks with it that a message is from here",
        example="whsec_…",
        is_secret=True,
        is_required=True,
        check=is_signing_key,
    ),
    Field(
        name="signing_key_before",
        label="Signing key before",
        help="while the receiver changes keys, messages are signed with both",
        example="whsec_…",
        is_secret=True,
        check=is_signing_key,
    ),
    Field(
        name="authorization",
        label="Authorization header",
        help="for a gateway that asks for one",
        example="Bearer …",
        is_secret=True,
    ),
)


class Webhook:
    """Posts each message once to one address."""

    def __init__(
        self,
        secrets: Mapping[str, str],
        outgoing: Outgoing,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = secrets["url"]
        self._keys = [
            key_bytes(secrets[name])
            for name in ("signing_key", "signing_key_before")
            if secrets.get(name)
        ]
        self._authorization = secrets.get("authorization", "")
        self._outgoing, self._clock = outgoing, clock

    async def send(self, message: Message, thread: str) -> Outcome:
        body = payload.encode(message)
        at = int(self._clock())
        headers = {
            "content-type": "application/json",
            "webhook-id": message.id,
            "webhook-timestamp": str(at),
            "webhook-signature": signatures(self._keys, message.id, at, body),
        }
        if self._authorization:
            headers["authorization"] = self._authorization
        answer = await answers.of_request(self._outgoing.post(self._url, body, headers))
        return answer if isinstance(answer, TryAgain) else answers.outcome(answer)


def signatures(keys: list[bytes], message_id: str, at: int, body: bytes) -> str:
    """One `v1,…` for each key, with spaces: a receiver accepts any that fits its own."""
    signed = f"{message_id}.{at}.".encode() + body
    made = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys]
    return " ".join(f"v1,{text}" for text in made)


def _make(options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing) -> Webhook:
    return Webhook(secrets, outgoing)


KIND = Kind(
    label="Webhook",
    about="A signed JSON document by HTTP POST, as Standard Webhooks say. For your own programs.",
    fields=FIELDS,
    make=_make,
    target=lambda options, secrets: host_of(secrets.get("url", "")),
)
