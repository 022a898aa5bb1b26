"""One real hang from the ranks to the people: everything between fails once, nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from tests.acceptance.conftest import new_stage
from tests.support import outbox as house
from tests.support import postgres, scenes, stock_postgres
from tests.support.receiver import Receiver, Reply, Request
from tests.support.waiting import until

from hangwatch_server.db.engine import Database
from hangwatch_server.demo import cases
from hangwatch_server.demo.stage import Stage
from hangwatch_server.model import State
from hangwatch_server.model.alerts import ChannelKind

PATIENCE_S = 90
FAST = {
    "HANGWATCH_OUTGOING_ALLOW": "127.0.0.0/8",
    "HANGWATCH_ALERT_SETTLE_S": "1",
    "HANGWATCH_ALERT_CLAIM_S": "6",
    "HANGWATCH_ALERT_RETRY_S": "0.2",
    "HANGWATCH_RESTART_WITHIN_S": "3",
}


@dataclass
class Rows:
    """What the database holds of the outbox."""

    url: str

    def states(self, channel: str) -> dict[str, str]:
        """Topic to state of this channel's messages."""
        return {topic: state for topic, state, _ in self._of(channel)}

    def has_claim(self, channel: str) -> bool:
        return any(claim for _, _, claim in self._of(channel))

    def _of(self, channel: str) -> list[tuple[str, str, str]]:
        query = (
            "SELECT topic, deliveries.state, claim FROM deliveries JOIN channels "
            "ON channels.id = channel WHERE name = %s"
        )
        with psycopg.connect(postgres.plain(self.url)) as connection:
            return connection.execute(query, (channel,)).fetchall()


@pytest.fixture
def deaf_port() -> Iterator[tuple[int, Callable[[], None]]]:
    """A port where connections are taken and nothing is ever read, and how to free it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1], listener.close


@pytest.fixture
def database_url() -> Iterator[str]:
    with stock_postgres.running() as url:
        yield url


def test_a_real_hang_is_told_once_whatever_fails(
    own_stage: Stage, database_url: str, deaf_port: tuple[int, Callable[[], None]]
) -> None:
    """The receiver is deaf, then fails five times; the server that holds the claim is killed; from
    then on two servers race for every message."""
    port, free_port = deaf_port
    rows = Rows(database_url)
    with Receiver.started() as slack:
        own_stage.settings = FAST | {"HANGWATCH_DATABASE_URL": database_url}
        own_stage.start_server()
        own_stage.start_agents()
        asyncio.run(_make_channels(database_url, f"http://127.0.0.1:{port}/hook", slack.url))
        job = own_stage.start_job(cases.find("receive-both"), "gpt-7b")
        verdict = until(
            lambda: scenes.verdict_in(own_stage, "gpt-7b", State.HUNG), PATIENCE_S, "it hangs"
        )
        until(lambda: rows.states("slack") == {"opened": "sent"}, PATIENCE_S, "Slack is told")
        until(lambda: rows.has_claim("hooks"), PATIENCE_S, "the webhook's message is claimed")

        _kill(own_stage)
        free_port()
        with Receiver.started(port) as hooks:
            hooks.answer_in_turn(*[Reply(503)] * 5, Reply(200))  # before anybody can ask
            with _second_server(own_stage):
                own_stage.start_server()
                until(lambda: rows.states("hooks") == {"opened": "sent"}, PATIENCE_S, "it arrives")
                own_stage.client.post(
                    f"/incidents/{verdict['incident']}/acknowledge", {"comment": "on it"}
                )
                until(lambda: _are_sent(rows, 2), PATIENCE_S, "the acknowledgement is told")
                job.stop()
                until(lambda: _are_sent(rows, 3), PATIENCE_S, "the end is told")

            _check_webhook(hooks.requests, verdict)
        _check_slack(slack.requests, verdict)


def _check_webhook(requests: list[Request], verdict: dict[str, Any]) -> None:
    """Each message is genuine; under each id the same body, however often it came."""
    verified = [Verifier(house.SIGNING_KEY).verify(one.body, one.headers) for one in requests]
    by_id: dict[str, set[bytes]] = {}
    for request in requests:
        by_id.setdefault(request.headers["webhook-id"], set()).add(request.body)

    assert [one["type"] for one in verified] == ["incident.opened"] * 6 + [
        "incident.acknowledged",
        "incident.resolved",
    ]
    assert [len(bodies) for bodies in by_id.values()] == [1, 1, 1]
    assert {one["data"]["incident"]["id"] for one in verified} == {verdict["incident"]}
    assert "on it" in verified[-2]["data"]["text"]
    assert "job failed" in verified[-1]["data"]["text"]


def _check_slack(requests: list[Request], verdict: dict[str, Any]) -> None:
    """Slack knows no ids: each of the three came once."""
    texts = [request.json["text"] for request in requests]

    assert len(texts) == 3, texts
    assert all(f"/incidents/{verdict['incident']}" in str(request.json) for request in requests)
    assert "looks after it" in texts[1]
    assert "Over after" in texts[2]


def _are_sent(rows: Rows, count: int) -> bool:
    return all(
        list(rows.states(channel).values()) == ["sent"] * count for channel in ("hooks", "slack")
    )


def _kill(stage: Stage) -> None:
    assert stage.server is not None
    stage.server.kill()
    stage.server.wait()


@contextlib.contextmanager
def _second_server(first: Stage) -> Iterator[None]:
    """Another server on the same database, without agents."""
    with new_stage() as second:
        second.admin_token, second.settings = first.admin_token, first.settings
        second.start_server()
        yield


async def _make_channels(database_url: str, hooks_url: str, slack_url: str) -> None:
    db = Database(database_url)
    await db.open()
    await house.channel(db, hooks_url)
    secrets = {"url": {"value": f"{slack_url}/services/T0/B0/secret"}}
    await house.channel(
        db, slack_url, name="slack", kind=ChannelKind.SLACK_WEBHOOK, secrets=secrets
    )
    await db.close()
