"""Alerts of a running server by its API: a hang that agents report, its deliveries, silences."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.support import outbox as house
from tests.support import postgres, running_server, synthetic_agent
from tests.support.receiver import Receiver, Reply
from tests.support.running_server import RunningServer
from tests.support.waiting import until

from hangwatch_agent import wire
from hangwatch_server.db.engine import Database

pytestmark = pytest.mark.integration
SETTINGS = {
    "HANGWATCH_OUTGOING_ALLOW": "127.0.0.0/8",
    "HANGWATCH_ALERT_SETTLE_S": "0.5",
    "HANGWATCH_ALERT_TICK_S": "0.2",
    "HANGWATCH_ALERT_RETRY_S": "0.1",
}
QUIET = wire.Launch(key="launch of a quiet job", name="quiet-test")


@dataclass
class House:
    server: RunningServer
    admin: httpx.Client
    receiver: Receiver

    def deliveries(self, **query: str) -> list[dict[str, Any]]:
        answer = self.admin.get("/api/v1/deliveries", params=query).raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items


@pytest.fixture(scope="module")
def served(migrated: str) -> Iterator[House]:
    with (
        postgres.fresh_database(migrated, postgres.TEMPLATE) as url,
        postgres.data_folder() as folder,
        Receiver.started() as receiver,
        running_server.running(url, folder, SETTINGS) as server,
        server.client() as admin,
    ):
        asyncio.run(_make_channel(url, receiver.url))
        yield House(server, admin, receiver)


async def _make_channel(database_url: str, receiver_url: str) -> None:
    db = Database(database_url)
    await db.open()
    await house.channel(db, receiver_url)
    await db.close()


def silence(**changes: object) -> dict[str, object]:
    matchers = [{"field": "job", "pattern": "quiet-*"}]
    return {"matchers": matchers, "for": "2h", "comment": "moving racks", **changes}


def test_a_hang_that_agents_report_is_delivered_and_every_try_is_on_record(
    served: House,
) -> None:
    served.receiver.answer_in_turn(Reply(503), Reply(200))
    token = served.server.new_token("agent", "node-a")
    with synthetic_agent.beating(served.server.url, token, "node-a") as agent:
        until(lambda: agent.number > 10, 60, "the job makes progress")
        agent.is_gone = True
        (row,) = until(lambda: served.deliveries(state="sent"), 120, "the hang is told")
    found = served.admin.get(f"/api/v1/deliveries/{row['id']}").json()
    again = served.admin.post(f"/api/v1/deliveries/{row['id']}/redeliver")
    until(lambda: len(served.receiver.requests) == 3, 60, "it is sent again")

    assert (row["topic"], row["channel_name"], row["tries"]) == ("opened", "hooks", 2)
    assert [attempt["status"] for attempt in found["attempts"]] == [503, 200]
    assert found["message"]["url"] == f"{served.server.url}/incidents/{row['incident']}"
    assert found["message"]["incident"]["verdict"]["culprit_ranks"] == "1"
    assert again.status_code == 202
    assert {one.headers["webhook-id"] for one in served.receiver.requests} == {row["id"]}
    assert served.deliveries(channel="hooks", incident=row["incident"]) != []
    assert served.deliveries(channel="no such channel") == []


def test_what_a_silence_holds_back_says_by_whom_and_goes_out_when_it_is_cancelled(
    served: House,
) -> None:
    made = served.admin.post("/api/v1/silences", json=silence())
    token = served.server.new_token("agent", "node-b")
    with synthetic_agent.beating(served.server.url, token, "node-b", QUIET) as agent:
        until(lambda: agent.number > 10, 60, "the job makes progress")
        agent.is_gone = True
        (held,) = until(lambda: served.deliveries(state="silenced"), 120, "it is held back")
        served.admin.delete(f"/api/v1/silences/{made.json()['id']}").raise_for_status()
        until(
            lambda: any(one["id"] == held["id"] for one in served.deliveries(state="sent")),
            60,
            "it goes out",
        )

    assert made.status_code == 201
    assert held["reason"].startswith("silenced by admin")
    assert held["reason"].endswith("moving racks")


def test_a_maintenance_window_is_planned_listed_and_cancelled(served: House) -> None:
    start = datetime.now(UTC) + timedelta(days=1)
    body = silence(
        starts_at=start.isoformat(),
        ends_at=(start + timedelta(hours=2)).isoformat(),
        repeat="weekly",
    )
    del body["for"]
    made = served.admin.post("/api/v1/silences", json=body).json()
    listed = served.admin.get("/api/v1/silences", params={"over": "false"}).json()["items"]
    cancelled = served.admin.delete(f"/api/v1/silences/{made['id']}")
    over = served.admin.get("/api/v1/silences", params={"over": "true"}).json()["items"]
    audited = served.admin.get("/api/v1/audit", params={"limit": 2}).json()["items"]

    assert made == served.admin.get(f"/api/v1/silences/{made['id']}").json() | {
        "cancelled_at": None
    }
    assert made["id"] in [one["id"] for one in listed]
    assert cancelled.json()["cancelled_at"] is not None
    assert made["id"] in [one["id"] for one in over]
    assert [row["action"] for row in audited] == ["silence.cancel", "silence.create"]
    assert audited[1]["detail"].startswith("job=quiet-*, ")


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({"for": "200d"}, "bad-duration"),
        ({"for": "0s"}, "bad-silence"),
        ({"for": "25h", "repeat": "daily"}, "bad-silence"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "invalid-request"),
        ({"matchers": []}, "invalid-request"),
        ({"matchers": [{"field": "owner", "pattern": "*"}]}, "invalid-request"),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused(
    served: House, changes: dict[str, object], slug: str
) -> None:
    answer = served.admin.post("/api/v1/silences", json=silence(**changes))

    assert answer.status_code == 422
    assert answer.json()["type"] == f"urn:hangwatch:{slug}"


def test_readers_see_and_change_nothing(served: House) -> None:
    with served.server.client(served.server.new_token("read")) as reader:
        assert reader.get("/api/v1/deliveries").status_code == 200
        assert reader.get("/api/v1/silences").status_code == 200
        assert reader.post("/api/v1/silences", json=silence()).status_code == 403
        assert reader.delete("/api/v1/silences/x").status_code == 403
        assert reader.post("/api/v1/deliveries/x/redeliver").status_code == 403
