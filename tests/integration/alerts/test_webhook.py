"""The plain webhook against a real receiver: what it sends, and how it reads the answer."""

from __future__ import annotations

import json

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from tests.support import alerts
from tests.support.receiver import Receiver

from hangwatch_server.alerts import channels
from hangwatch_server.alerts.channels.base import Accepted, Outcome, Refused, TryAgain
from hangwatch_server.model.alerts import ChannelKind, Topic

pytestmark = pytest.mark.anyio
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_KEY = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@pytest.fixture
def receiver() -> Receiver:
    with Receiver.started() as found:
        yield found


async def send(receiver: Receiver, **secrets: str) -> Outcome:
    given = {"url": f"{receiver.url}/hook", "signing_key": KEY, **secrets}
    async with alerts.outgoing() as outgoing:
        sender = channels.sender(ChannelKind.WEBHOOK, {}, given, outgoing)
        return await sender.send(alerts.message(Topic.OPENED), "")


async def test_a_receiver_verifies_the_message_with_the_published_library(
    receiver: Receiver,
) -> None:
    outcome = await send(receiver)
    (request,) = receiver.requests
    verified = Verifier(KEY).verify(request.body, request.headers)

    assert outcome == Accepted(status=200)
    assert verified["type"] == "incident.opened"
    assert verified["data"]["incident"]["verdict"]["culprits"][0]["rank"] == 5
    assert verified["data"]["incident"]["verdict"]["path"][0]["for"] == [5]
    assert request.headers["webhook-id"] == alerts.message(Topic.OPENED).id
    assert len(request.body) <= 20_000


async def test_while_keys_change_a_receiver_may_hold_either(receiver: Receiver) -> None:
    await send(receiver, signing_key_before=OLD_KEY)
    (request,) = receiver.requests

    assert len(request.headers["webhook-signature"].split(" ")) == 2
    for key in (KEY, OLD_KEY):
        assert Verifier(key).verify(request.body, request.headers)


async def test_a_gateway_gets_its_authorization(receiver: Receiver) -> None:
    await send(receiver, authorization="Bearer abc")

    assert receiver.requests[0].headers["authorization"] == "Bearer abc"


@pytest.mark.parametrize("status", [400, 401, 404, 500, 502])
async def test_a_failure_is_tried_again(receiver: Receiver, status: int) -> None:
    receiver.answer(status, "not\nnow")

    outcome = await send(receiver)

    assert isinstance(outcome, TryAgain)
    assert outcome.status == status
    assert outcome.error == f"the receiver answered {status}: not now"


@pytest.mark.parametrize("status", [429, 503])
async def test_a_receiver_that_names_a_time_is_obeyed(receiver: Receiver, status: int) -> None:
    receiver.answer(status, "", {"retry-after": "17"})

    outcome = await send(receiver)

    assert isinstance(outcome, TryAgain)
    assert outcome.after_s == 17


async def test_gone_is_the_end_of_the_channel(receiver: Receiver) -> None:
    receiver.answer(410, "")

    outcome = await send(receiver)

    assert isinstance(outcome, Refused)
    assert outcome.is_gone


async def test_a_redirect_is_not_followed_and_told(receiver: Receiver) -> None:
    receiver.answer(302, "", {"location": f"{receiver.url}/elsewhere"})

    outcome = await send(receiver)

    assert isinstance(outcome, TryAgain)
    assert "redirects are not followed" in outcome.error
    assert len(receiver.requests) == 1


async def test_a_receiver_that_is_away_is_tried_again() -> None:
    with Receiver.started() as gone:
        pass

    outcome = await send(gone)

    assert isinstance(outcome, TryAgain)
    assert "refused" in outcome.error.lower()


def test_a_huge_incident_is_cut_and_says_so() -> None:
    from hangwatch_server.alerts.channels import payload

    body = payload.encode(alerts.message(Topic.OPENED, alerts.huge_incident()))
    document = json.loads(body)

    assert len(body) <= payload.MAX_BYTES
    assert "evidence" in document["data"]["cut"]
    assert document["data"]["incident"]["verdict"]["summary"]
    assert body == payload.encode(alerts.message(Topic.OPENED, alerts.huge_incident()))
