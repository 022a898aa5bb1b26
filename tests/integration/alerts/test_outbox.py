"""From the row of an incident to a real receiver: once each, in order, whatever fails between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.support import outbox as house
from tests.support import verdicts as make
from tests.support.outbox import until
from tests.support.receiver import Receiver, Reply

from hangwatch_server.alerts import directory
from hangwatch_server.alerts.directory import Wish
from hangwatch_server.alerts.planner import Planner
from hangwatch_server.alerts.planning import Rules
from hangwatch_server.alerts.worker import Pace
from hangwatch_server.db import (
    audit,
    blind_spells,
    captures,
    channels,
    claims,
    deliveries,
    incidents,
    outbox,
    retention,
    silences,
)
from hangwatch_server.db.engine import Database
from hangwatch_server.model import Incident, IncidentState
from hangwatch_server.model.alerts import (
    BlindCause,
    Channel,
    ChannelKind,
    DeliveryState,
    Matcher,
    MatchField,
    Repeat,
    Silence,
    Topic,
)

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver.started() as found:
        yield found


@pytest.fixture
async def working(db: Database, anyio_backend: str) -> AsyncIterator[house.Sending]:
    async with house.sending(db) as found:
        yield found


async def states(db: Database) -> dict[str, DeliveryState]:
    """By id of the message."""
    rows, _ = await deliveries.list_page(db)
    return {row.id: row.state for row in rows}


def types(receiver: Receiver) -> list[str]:
    return [request.json["type"] for request in receiver.requests]


async def test_nothing_is_told_before_the_hang_has_settled(
    db: Database, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url)
    await house.hang(db)

    assert await house.planner(db).plan() == 0

    await house.pass_time(db, 11)
    assert await house.planner(db).plan() == 1


async def test_a_hang_is_told_once_however_often_it_is_planned(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    incident = await _told_hang(db, receiver)
    plans = await asyncio.gather(*(house.planner(db).plan() for _ in range(5)))

    assert sum(plans) == 0
    (request,) = receiver.requests
    assert request.json["type"] == "incident.opened"
    assert request.json["data"]["incident"]["id"] == incident
    assert request.json["data"]["url"] == f"{house.BASE_URL}/incidents/{incident}"


async def test_opened_acknowledged_and_resolved_arrive_in_order_with_ids_of_their_own(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    incident = await _told_hang(db, receiver)
    await incidents.acknowledge(db, incident, "ada", "looking")
    await house.planner(db).plan()
    await _end(db, incident)
    await house.pass_time(db, 66)
    await house.planner(db).plan()

    await until(lambda: len(receiver.requests) == 3, "all are told")
    assert types(receiver) == ["incident.opened", "incident.acknowledged", "incident.resolved"]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 3
    assert "ada looks after it" in receiver.requests[1].json["data"]["title"]
    assert receiver.requests[2].json["data"]["title"].startswith("Resolved after 1 min")


async def test_a_stall_that_comes_back_within_a_minute_is_no_second_message(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    incident = await _told_hang(db, receiver)
    ended = await _end(db, incident)
    await house.pass_time(db, 50)
    await house.planner(db).plan()
    lease = await house.lease_of(db, ended.job)
    await incidents.reopen(db, lease, incident, ended.verdict)
    await incidents.confirm(db, lease, incident, ended.verdict)
    await house.pass_time(db, 600)

    assert await house.planner(db).plan() == 0
    assert types(receiver) == ["incident.opened"]


async def test_what_happened_while_the_server_was_away_is_told_in_order(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    """Nothing was planned while it stood, was acknowledged and ended."""
    await house.channel(db, receiver.url)
    incident = await house.settled_hang(db)
    await incidents.acknowledge(db, incident.id, "ada", "")
    await _end(db, incident.id)
    await house.pass_time(db, 3600)

    await house.planner(db).plan()

    await until(lambda: len(receiver.requests) == 3, "all are told")
    assert types(receiver) == ["incident.opened", "incident.acknowledged", "incident.resolved"]
    assert await outbox.cases(db) == ((), datetime.min.replace(tzinfo=UTC))


async def test_a_receiver_that_fails_five_times_gets_the_same_message_in_the_end(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    receiver.answer_in_turn(*[Reply(503)] * 5, Reply(200))

    incident = await _told_hang(db, receiver, requests=6)

    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len({request.body for request in receiver.requests}) == 1
    (row,) = await deliveries.of_incident(db, incident)
    found = await deliveries.find(db, row.id)
    assert found is not None
    assert found.state is DeliveryState.SENT
    assert [attempt.status for attempt in found.attempts] == [503] * 5 + [200]
    assert found.tries == 6


async def test_a_receiver_that_repeats_the_address_gives_no_secret_away(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    receiver.answer_in_turn(
        Reply(404, "Cannot POST /hooks/s3cret-key"),
        Reply(301, "", {"location": "https://other.example/hooks/s3cret-key"}),
        Reply(200),
    )
    await house.channel(db, f"{receiver.url}/hooks/s3cret-key")
    incident = await house.settled_hang(db)
    await house.planner(db).plan()
    await until(_is_sent(db, 3), "it is told")

    (row,) = await deliveries.of_incident(db, incident.id)
    found = await deliveries.find(db, row.id)
    assert found is not None
    assert "Cannot POST [hidden]" in found.attempts[0].error
    assert "a redirect to https://other.example[hidden]:" in found.attempts[1].error
    assert not [attempt for attempt in found.attempts if "s3cret" in attempt.error]


async def test_a_later_message_waits_while_the_first_is_tried_again(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    receiver.answer_in_turn(*[Reply(500)] * 4, Reply(200))
    await house.channel(db, receiver.url)
    incident = await house.settled_hang(db)
    await _end(db, incident.id)
    await house.pass_time(db, 100)
    await house.planner(db).plan()

    await until(lambda: len(receiver.requests) == 6, "both are told")
    assert types(receiver) == ["incident.opened"] * 5 + ["incident.resolved"]


async def test_what_follows_a_message_that_was_given_up_is_not_sent(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    receiver.answer_in_turn(Reply(410))
    await house.channel(db, receiver.url, name="gone")
    incident = await house.settled_hang(db)
    await _end(db, incident.id)
    await house.pass_time(db, 100)
    await house.planner(db).plan()

    async def is_settled() -> bool:
        return set((await states(db)).values()) == {DeliveryState.FAILED}

    await until(is_settled, "both are given up")
    assert types(receiver) == ["incident.opened"]


async def test_a_receiver_that_is_gone_disables_its_channel_and_says_so(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    receiver.answer(410)
    channel = await house.channel(db, receiver.url)
    await house.settled_hang(db)
    await house.planner(db).plan()

    async def disabled() -> bool:
        found = await channels.find(db, channel.id)
        return found is not None and not found.is_enabled

    await until(disabled, "the channel is disabled")
    found = await channels.find(db, channel.id)
    assert found is not None
    assert "410" in found.disabled_reason

    async def audited() -> bool:
        rows, _ = await audit.list_page(db)
        return [(row.action, row.subject) for row in rows] == [
            ("channel.disable", f"channel:{channel.id}")
        ]

    await until(audited, "it is in the audit")


async def test_a_channel_that_is_enabled_again_is_not_told_of_what_ended_meanwhile(
    db: Database, receiver: Receiver
) -> None:
    channel = await house.channel(db, receiver.url)
    await channels.disable(db, channel.id, "maintenance")
    incident = await house.settled_hang(db)
    await _end(db, incident.id)
    await blind_spells.record(db, BlindCause.DATABASE, "the database was away", 300.0)
    await house.pass_time(db, 86400)
    await house.planner(db).plan()

    await _change(db, channel, is_enabled=True, topics=directory.USUAL_TOPICS)

    assert await house.planner(db).plan() == 0
    assert await blind_spells.to_tell(db) == []


async def test_what_waits_on_a_channel_that_somebody_disables_is_given_up(
    db: Database, receiver: Receiver
) -> None:
    channel = await house.channel(db, receiver.url)
    incident = await house.settled_hang(db)
    await house.planner(db).plan()

    await _change(db, channel, is_enabled=False)

    (row,) = await deliveries.of_incident(db, incident.id)
    assert (row.state, row.reason) == (
        DeliveryState.FAILED,
        "the channel was disabled: by ada",
    )


async def test_a_channel_that_is_mended_is_told_of_the_hang_that_still_stands(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    receiver.answer(410)
    channel = await house.channel(db, receiver.url)
    over = await house.hang(db, "job000000001")
    standing = await house.settled_hang(db)
    await house.planner(db).plan()
    await until(_is_given_up(db, channel), "the receiver was gone")
    await _end(db, over.id)
    before = len(receiver.requests)
    receiver.answer(200)

    await _change(db, channel, is_enabled=True)
    await house.planner(db).plan()

    await until(_is_delivered(db, standing), "it is told")
    told = [request.json["data"]["incident"]["id"] for request in receiver.requests[before:]]
    assert told == [standing.id]


async def test_a_message_that_waits_for_its_next_try_goes_out_as_its_channel_is_mended(
    db: Database, receiver: Receiver
) -> None:
    receiver.answer_in_turn(Reply(401), Reply(200))
    channel = await house.channel(db, receiver.url)
    await house.settled_hang(db)
    await house.planner(db).plan()
    async with house.sending(db, Pace(tick_s=0.05, claim_s=5.0, retry_s=1e6)):
        await until(lambda: receiver.requests, "it was refused")
        await until(_is_tried(db), "it waits")

        await _change(db, channel)

        await until(lambda: len(receiver.requests) == 2, "it is told")


async def test_an_incident_that_cannot_be_read_keeps_no_other_from_being_told(
    db: Database, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url)
    odd, other = await house.hang(db, "job000000001"), await house.hang(db, "job000000002")
    await house.pass_time(db, 60)
    async with db.begin() as connection:
        spoil = text("UPDATE incidents SET verdict = verdict - 'coverage' WHERE id = :odd")
        await connection.execute(spoil, {"odd": odd.id})

    assert await house.planner(db).plan() == 1
    assert len(await deliveries.of_incident(db, other.id)) == 1


async def test_two_workers_send_each_message_once(db: Database, receiver: Receiver) -> None:
    await house.channel(db, receiver.url, name="one")
    await house.channel(db, receiver.url, name="two")
    for number in range(30):
        await house.hang(db, f"job{number:09}", f"job-{number}")
    await house.pass_time(db, 60)

    # So long that no claim runs out on a busy machine: then a second sending would be right.
    pace = Pace(tick_s=0.05, claim_s=120.0, retry_s=0.02)
    async with house.sending(db, pace), house.sending(db, pace):
        await asyncio.gather(house.planner(db).plan(), house.planner(db).plan())
        await until(lambda: len(receiver.requests) >= 60, "all are told", 30)

    counts = Counter(request.headers["webhook-id"] for request in receiver.requests)
    assert len(counts) == 60
    assert set(counts.values()) == {1}


async def test_a_slow_receiver_delays_no_other(db: Database, receiver: Receiver) -> None:
    with Receiver.started() as slow:
        slow.hold()
        await house.channel(db, slow.url, name="slow")
        await house.channel(db, receiver.url, name="fast")
        for number in range(20):
            await house.hang(db, f"job{number:09}")
        await house.pass_time(db, 60)
        async with house.sending(db):
            await house.planner(db).plan()
            await until(lambda: len(receiver.requests) == 20, "the fast one has all", 30)
            slow.go_on()


@pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")
async def test_a_service_that_takes_longer_than_a_claim_is_told_once(
    db: Database, receiver: Receiver
) -> None:
    """A mail server that answers late has the mail all the same: each try would be one more."""
    receiver.hold()
    url = receiver.url.replace("http:", "json:")
    channel = await house.channel(db, "", kind=ChannelKind.APPRISE, secrets={"url": {"value": url}})
    await house.settled_hang(db)
    await house.planner(db).plan()
    pace = Pace(tick_s=0.05, claim_s=1.0, retry_s=0.01)
    async with house.sending(db, pace, frozenset({"json"})):
        await until(lambda: receiver.requests, "it is under way")
        await until(_is_claim_over(db, 1.0), "a usual claim has run out")
        receiver.go_on()
        await until(_is_all_sent(db), "it is settled")

    (row,) = (await deliveries.list_page(db, channel=channel.id))[0]
    assert (len(receiver.requests), row.tries) == (1, 1)


async def test_a_message_claimed_by_a_server_that_was_killed_goes_out_under_the_same_id(
    db: Database, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url)
    await house.settled_hang(db)
    await house.planner(db).plan()
    (claimed,) = await claims.claim(db, "dead:1", for_s=30, most_per_channel=4, without=())
    assert await claims.claim(db, "other:1", for_s=30, most_per_channel=4, without=()) == []

    await house.pass_time(db, 31)
    async with house.sending(db):
        await until(lambda: receiver.requests, "it is sent")

    assert [request.headers["webhook-id"] for request in receiver.requests] == [claimed.id]
    late = claims.Tried(status=200, error="", took_s=31.0)
    assert not await claims.settle_sent(db, claimed, late, "")


async def test_a_server_that_stops_gives_its_claims_up(db: Database, receiver: Receiver) -> None:
    receiver.hold()
    await house.channel(db, receiver.url)
    await house.settled_hang(db)
    await house.planner(db).plan()
    async with house.sending(
        db, Pace(tick_s=0.05, claim_s=600, retry_s=60, finish_s=0.1)
    ) as working:
        await until(lambda: receiver.requests, "it is under way")
        await working.stop()

    assert len(await claims.claim(db, "next:1", for_s=30, most_per_channel=4, without=())) == 1
    receiver.go_on()


async def test_a_silence_holds_back_and_its_end_lets_go(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    now = datetime.now(UTC)
    silence = await silences.create(
        db,
        Silence(
            id="",
            matchers=(Matcher(field=MatchField.JOB, pattern="gpt-*"),),
            starts_at=now - timedelta(hours=2),
            ends_at=now + timedelta(hours=2),
            repeat=Repeat.ONCE,
            created_at=now,
            created_by="ada",
            comment="moving racks",
        ),
    )
    await house.channel(db, receiver.url)
    incident = await house.settled_hang(db)
    await house.planner(db).plan()

    (held,) = await deliveries.of_incident(db, incident.id)
    assert held.state is DeliveryState.SILENCED
    assert held.reason.startswith("silenced by ada until ")
    assert held.reason.endswith("UTC: moving racks")

    await silences.cancel(db, silence.id)
    await house.planner(db).plan()
    await until(lambda: receiver.requests, "it is told")
    assert receiver.requests[0].headers["webhook-id"] == held.id


async def test_reminders_follow_each_other_at_the_channels_pace(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    incident = await _told_hang(db, receiver, remind_s=300.0)
    for number in (1, 2):
        assert await house.planner(db).plan() == 0
        await house.pass_time(db, 301)
        await house.planner(db).plan()
        await until(lambda number=number: len(receiver.requests) == number + 1, "reminded")
        await until(_is_all_sent(db), "settled")
    await incidents.acknowledge(db, incident, "ada", "")
    await house.pass_time(db, 3600)
    await house.planner(db).plan()

    await until(lambda: len(receiver.requests) == 4, "acknowledged")
    assert types(receiver)[1:] == [
        "incident.reminder",
        "incident.reminder",
        "incident.acknowledged",
    ]
    assert "Still stuck after" in receiver.requests[1].json["data"]["title"]


async def test_a_message_is_sent_again_on_demand(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    incident = await _told_hang(db, receiver)
    (row,) = await deliveries.of_incident(db, incident)

    await deliveries.redeliver(db, row.id)

    await until(lambda: len(receiver.requests) == 2, "it came again")
    assert {request.headers["webhook-id"] for request in receiver.requests} == {row.id}


async def test_hidden_suspicions_and_records_of_failures_are_told_to_nobody(
    db: Database, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url)
    found = await house.suspicion(db)
    lease = await house.lease_of(db, found.job)
    await incidents.end(db, lease, found.id, IncidentState.PRUNED, "progress")
    await incidents.record_failure(db, lease, found.verdict)
    await house.pass_time(db, 600)

    assert await house.planner(db).plan() == 0


async def test_messages_name_the_culprits_stack_where_one_is_stored(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    await house.channel(db, receiver.url)
    incident = await house.settled_hang(db)
    await captures.create(db, make.capture("c1", incident=incident.id))
    await captures.store_part(db, make.part("c1"), "node-b")

    await house.planner(db).plan()

    await until(lambda: receiver.requests, "it is told")
    assert receiver.requests[0].json["data"]["stack"] == ["train.py:88 in __getitem__"]


async def _change(db: Database, channel: Channel, **changes: object) -> None:
    """As somebody who presses Save does."""
    wish = Wish(
        name=channel.name,
        kind=channel.kind,
        options=channel.options,
        secrets={},
        topics=channel.topics,
    )
    changed = replace(wish, **changes)  # type: ignore[arg-type]
    await directory.change(db, Path("/nowhere"), channel.id, changed, "ada")


def _is_given_up(db: Database, channel: Channel) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        now = await channels.find(db, channel.id)
        is_disabled = now is not None and not now.is_enabled
        return is_disabled and set((await states(db)).values()) == {DeliveryState.FAILED}

    return found


def _is_delivered(db: Database, incident: Incident) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        rows = await deliveries.of_incident(db, incident.id)
        return [row.state for row in rows] == [DeliveryState.SENT]

    return found


def _is_claim_over(db: Database, after_s: float) -> Callable[[], Awaitable[bool]]:
    """By the database's clock."""
    statement = text(
        "SELECT clock_timestamp() > min(next_at) + make_interval(secs => :s) FROM deliveries"
    )

    async def found() -> bool:
        async with db.begin() as connection:
            return bool((await connection.execute(statement, {"s": after_s})).scalar_one())

    return found


def _is_tried(db: Database) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        rows, _ = await deliveries.list_page(db)
        return [row.tries for row in rows] == [1]

    return found


def _is_all_sent(db: Database) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        rows, _ = await deliveries.list_page(db)
        return all(row.state is DeliveryState.SENT for row in rows)

    return found


def _is_sent(db: Database, tries: int) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        rows, _ = await deliveries.list_page(db)
        return [(row.state, row.tries) for row in rows] == [(DeliveryState.SENT, tries)]

    return found


async def _told_hang(db: Database, receiver: Receiver, requests: int = 1, **changes: object) -> str:
    """A hang that the receiver was told of; its id."""
    await house.channel(db, receiver.url, **changes)
    incident = await house.settled_hang(db)
    await house.planner(db).plan()
    await until(lambda: len(receiver.requests) == requests, "it is told", 30)
    await until(_is_all_sent(db), "it is settled")
    return incident.id


async def _end(db: Database, incident_id: str) -> Incident:
    found = await incidents.find(db, incident_id)
    assert found is not None
    lease = await house.lease_of(db, found.job)
    return await incidents.end(db, lease, incident_id, IncidentState.RESOLVED, "progress")


async def test_a_message_that_another_version_wrote_stops_no_other(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    await house.channel(db, receiver.url)
    first = await house.hang(db, "job1")
    second = await house.hang(db, "job2")
    await house.pass_time(db, 60)
    await working.stop()
    await house.planner(db).plan()
    async with db.begin() as connection:
        statement = "UPDATE deliveries SET message = '{}' WHERE incident = :incident"
        await connection.execute(text(statement), {"incident": first.id})

    async with house.sending(db):
        await until(lambda: receiver.requests, "the other one is told")

    assert receiver.requests[0].json["data"]["incident"]["id"] == second.id
    (spoiled,) = await deliveries.of_incident(db, first.id)
    assert spoiled.state is DeliveryState.FAILED
    assert "another version" in spoiled.reason
    found = await deliveries.find(db, spoiled.id)
    assert found is not None
    assert "cannot read" in found.message.text


async def test_pages_hear_of_what_is_planned_and_of_what_became_of_it(
    db: Database, receiver: Receiver
) -> None:
    heard: list[str] = []
    await house.channel(db, receiver.url)
    incident = await house.settled_hang(db)

    planner = Planner(db, Rules(settle_s=10.0), house.BASE_URL, heard.append)
    await planner.plan()
    assert heard == [incident.id]

    async with house.sending(db, note=heard.append):
        await until(lambda: len(heard) == 2, "the page hears that it was sent")
    assert heard == [incident.id, incident.id]


async def test_a_hang_that_was_over_before_it_settled_is_told_to_nobody_and_found(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    await house.channel(db, receiver.url)
    incident = await house.hang(db)
    await house.pass_time(db, 6)
    lease = await house.lease_of(db, incident.job)
    await incidents.end(db, lease, incident.id, IncidentState.ENDED, "restarted as attempt 2")

    await house.planner(db).plan()
    await house.planner(db).plan()

    (row,) = await deliveries.of_incident(db, incident.id)
    assert row.state is DeliveryState.SILENCED
    assert "restarted as attempt 2" in row.reason
    assert receiver.requests == []


async def test_deliveries_go_with_their_incident_and_notices_by_their_age(
    db: Database, receiver: Receiver, working: house.Sending
) -> None:
    incident = await _told_hang(db, receiver)
    spell = (BlindCause.DATABASE, "the database could not be reached for 3 min", 180.0)
    await blind_spells.record(db, *spell)
    channel = (await channels.list_all(db))[0]
    await channels.change(
        db, replace(channel, topics=(Topic.SIGHTED,)), await channels.secrets(db, channel.id)
    )
    await house.planner(db).plan()
    await until(lambda: len(receiver.requests) == 2, "the notice is told")

    await house.pass_time(db, 40 * 86400)
    standing = await retention.prune(db, older_than_days=30)
    kept, _ = await deliveries.list_page(db)
    await _end(db, incident)
    await house.pass_time(db, 40 * 86400)
    await retention.prune(db, older_than_days=30)

    assert (standing.deliveries, standing.blind_spells) == (1, 1)
    assert [row.incident for row in kept] == [incident]
    assert await deliveries.list_page(db) == ([], None)
