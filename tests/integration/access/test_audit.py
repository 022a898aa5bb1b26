"""Everything that changes something is on record, with who did it and what to. None is missing."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.integration.access.conftest import GOOD
from tests.integration.access.teams import Team
from tests.support import alerts, routes, waiting
from tests.support import verdicts as make
from tests.support.running_server import RunningServer
from tests.support.synthetic_agent import SyntheticAgent

from hangwatch_server.app import create_app
from hangwatch_server.db import jobs, outbox
from hangwatch_server.db.engine import Database
from hangwatch_server.model.alerts import Topic
from hangwatch_server.model.outbox import Due
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.integration

# They change nothing: one waits, two read files that come with the request, one shows.
CHANGES_NOTHING = {
    "/api/v1/jobs/{job_id}/hold",
    "/api/v1/diagnose",
    "/offline",
    "/silences/preview",
}


@dataclasses.dataclass
class Scene:
    """An administrator with a token and with a browser, and things to change."""

    api: httpx.Client
    browser: httpx.Client
    csrf: str
    team: Team
    live_job: str
    server: RunningServer
    database: str

    def post(self, path: str, **form: str) -> httpx.Response:
        return self.browser.post(path, data={"csrf_token": self.csrf, **form})

    def token(self, **body: Any) -> dict[str, Any]:  # Any: free JSON
        wanted = {"name": "of an audit", "scopes": ["read"], **body}
        return dict(self.api.post("/api/v1/tokens", json=wanted).json())

    def session(self) -> str:
        """Id of a session begun just now."""
        with self.server.client("") as other:
            other.post("/login", data={"token": self.token()["token"]})
        return str(self.api.get("/api/v1/sessions?limit=1").json()["items"][0]["id"])

    def channel(self, name: str, *, is_enabled: bool = False) -> httpx.Response:
        """One that is enabled means no job here, and its receiver is nowhere."""
        secrets = {"url": RECEIVER, "signing_key": SIGNING_KEY}
        body = {
            "name": name,
            "kind": "webhook",
            "secrets": secrets,
            "is_enabled": is_enabled,
            "matchers": [{"field": "job", "pattern": "none"}],
        }
        return self.api.post("/api/v1/channels", json=body)

    def new_channel(self, name: str) -> str:
        return str(self.channel(name).json()["id"])

    def delivery(self, name: str) -> str:
        """Id of a message that waits on a channel of its own."""
        channel = self.channel(name, is_enabled=True).json()["id"]
        message = dataclasses.replace(
            alerts.message(Topic.TEST), id=f"msg_{name}", about=f"test:{channel}"
        )

        async def store(db: Database) -> None:
            await outbox.put(db, [(Due(channel=channel, topic=Topic.TEST), message)])

        self.stored(store)
        return message.id

    def silence(self) -> httpx.Response:
        body = {"matchers": [{"field": "job", "pattern": "none"}], "for": "1h"}
        return self.api.post("/api/v1/silences", json=body)

    def spare_job(self, job_id: str) -> str:
        async def store(db: Database) -> None:
            await jobs.save(db, dataclasses.replace(make.job(), id=job_id), f"run {job_id}", {})

        self.stored(store)
        return job_id

    def stored(self, store: Callable[[Database], Awaitable[None]]) -> None:
        """What no call can put there."""

        async def work() -> None:
            db = Database(self.database)
            await db.open()
            await store(db)
            await db.close()

        asyncio.run(work())


Act = Callable[[Scene], httpx.Response]
RECEIVER = "https://hooks.invalid/hangwatch"
SIGNING_KEY = f"whsec_{base64.b64encode(b'k' * 24).decode()}"
CHANNEL = {
    "secret-url": RECEIVER,
    "secret-signing_key": SIGNING_KEY,
    "topics": "opened",
    "match-field": "job",
    "match-pattern": "none",
}
INCIDENT, PAGE = "/api/v1/incidents/{}", "/incidents/{}"
# By route: how to do it with success, and what the record then says was done.
ACTS: dict[tuple[str, str], tuple[Act, str]] = {
    ("POST", "/api/v1/agent/enrol"): (
        lambda at: httpx.post(
            f"{at.server.url}/api/v1/agent/enrol",
            json={"node": "audited"},
            headers={"authorization": f"Bearer {_enrolment(at)}"},
        ),
        "node.enrol",
    ),
    ("POST", "/api/v1/incidents/{incident_id}/acknowledge"): (
        lambda at: at.api.post(INCIDENT.format(at.team.incident) + "/acknowledge"),
        "acknowledge",
    ),
    ("POST", "/api/v1/incidents/{incident_id}/comments"): (
        lambda at: at.api.post(
            INCIDENT.format(at.team.incident) + "/comments", json={"text": "seen"}
        ),
        "comment",
    ),
    ("POST", "/api/v1/incidents/{incident_id}/snooze"): (
        lambda at: at.api.post(INCIDENT.format(at.team.incident) + "/snooze", json={"for": "1h"}),
        "snooze",
    ),
    ("POST", "/incidents/{incident_id}/acknowledge"): (
        lambda at: at.post(PAGE.format(at.team.incident) + "/acknowledge"),
        "acknowledge",
    ),
    ("POST", "/incidents/{incident_id}/comments"): (
        lambda at: at.post(PAGE.format(at.team.incident) + "/comments", text="seen"),
        "comment",
    ),
    ("POST", "/incidents/{incident_id}/snooze"): (
        lambda at: at.post(PAGE.format(at.team.incident) + "/snooze", minutes="5"),
        "snooze",
    ),
    ("DELETE", "/api/v1/jobs/{job_id}"): (
        lambda at: at.api.delete(f"/api/v1/jobs/{at.spare_job('c3' * 6)}"),
        "job.delete",
    ),
    ("POST", "/jobs/{job_id}/delete"): (
        lambda at: at.post(f"/jobs/{at.spare_job('d4' * 6)}/delete"),
        "job.delete",
    ),
    ("POST", "/api/v1/jobs/{job_id}/captures"): (
        lambda at: at.api.post(f"/api/v1/jobs/{at.live_job}/captures", json={}),
        "capture",
    ),
    ("POST", "/jobs/{job_id}/captures"): (
        lambda at: at.post(f"/jobs/{at.live_job}/captures"),
        "capture",
    ),
    ("POST", "/api/v1/tokens"): (
        lambda at: at.api.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}),
        "token.create",
    ),
    ("POST", "/settings/tokens"): (
        lambda at: at.post("/settings/tokens", name="x", scope="read"),
        "token.create",
    ),
    ("DELETE", "/api/v1/tokens/{token_id}"): (
        lambda at: at.api.delete(f"/api/v1/tokens/{at.token()['id']}"),
        "token.revoke",
    ),
    ("POST", "/settings/tokens/{token_id}/revoke"): (
        lambda at: at.post(f"/settings/tokens/{at.token()['id']}/revoke"),
        "token.revoke",
    ),
    ("DELETE", "/api/v1/sessions/{session_id}"): (
        lambda at: at.api.delete(f"/api/v1/sessions/{at.session()}"),
        "session.end",
    ),
    ("POST", "/settings/sessions/{session_id}/end"): (
        lambda at: at.post(f"/settings/sessions/{at.session()}/end"),
        "session.end",
    ),
    ("POST", "/api/v1/channels"): (lambda at: at.channel("made"), "channel.create"),
    ("PATCH", "/api/v1/channels/{channel_id}"): (
        lambda at: at.api.patch(
            f"/api/v1/channels/{at.channel('changed').json()['id']}", json={"after_s": 60}
        ),
        "channel.change",
    ),
    ("DELETE", "/api/v1/channels/{channel_id}"): (
        lambda at: at.api.delete(f"/api/v1/channels/{at.channel('gone').json()['id']}"),
        "channel.delete",
    ),
    ("POST", "/api/v1/channels/{channel_id}/test"): (
        lambda at: at.api.post(f"/api/v1/channels/{at.new_channel('tried')}/test"),
        "channel.test",
    ),
    ("POST", "/channels/new"): (
        lambda at: at.post("/channels/new?kind=webhook", name="by form", **CHANNEL),
        "channel.create",
    ),
    ("POST", "/channels/{channel_id}"): (
        lambda at: at.post(f"/channels/{at.new_channel('kept')}", name="renamed", **CHANNEL),
        "channel.change",
    ),
    ("POST", "/channels/{channel_id}/delete"): (
        lambda at: at.post(f"/channels/{at.new_channel('gone by form')}/delete"),
        "channel.delete",
    ),
    ("POST", "/channels/{channel_id}/test"): (
        lambda at: at.post(f"/channels/{at.new_channel('tried by form')}/test"),
        "channel.test",
    ),
    ("POST", "/api/v1/deliveries/{delivery_id}/redeliver"): (
        lambda at: at.api.post(f"/api/v1/deliveries/{at.delivery('again')}/redeliver"),
        "delivery.redeliver",
    ),
    ("POST", "/deliveries/{delivery_id}/redeliver"): (
        lambda at: at.post(f"/deliveries/{at.delivery('form')}/redeliver"),
        "delivery.redeliver",
    ),
    ("POST", "/silences"): (
        lambda at: at.post(
            "/silences", **{"match-field": "job", "match-pattern": "none", "length": "1h"}
        ),
        "silence.create",
    ),
    ("POST", "/api/v1/silences"): (lambda at: at.silence(), "silence.create"),
    ("DELETE", "/api/v1/silences/{silence_id}"): (
        lambda at: at.api.delete(f"/api/v1/silences/{at.silence().json()['id']}"),
        "silence.cancel",
    ),
    ("POST", "/silences/{silence_id}/cancel"): (
        lambda at: at.post(f"/silences/{at.silence().json()['id']}/cancel"),
        "silence.cancel",
    ),
    ("POST", "/login"): (
        lambda at: httpx.post(f"{at.server.url}/login", data={"token": at.server.admin_token}),
        "login",
    ),
    ("POST", "/logout"): (lambda at: _signed_out(at), "logout"),
}


def _enrolment(at: Scene) -> str:
    return str(at.token(scopes=["enrol"], nodes="audited")["token"])


def _signed_out(at: Scene) -> httpx.Response:
    with at.server.client("") as client:
        client.post("/login", data={"token": at.server.admin_token})
        return client.post("/logout", data={"csrf_token": _csrf(client)})


def _csrf(client: httpx.Client) -> str:
    found = re.search(r'name="csrf_token" value="([0-9a-f]+)"', client.get("/").text)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def at(
    server: RunningServer, teams: dict[str, Team], database: str, good_agent: SyntheticAgent
) -> Iterator[Scene]:
    with server.client() as api, server.client("") as browser:
        browser.post("/login", data={"token": server.admin_token})
        path = f"/api/v1/jobs/by-name/{GOOD.name}"
        waiting.until(lambda: api.get(path).status_code == 200, 60, "the good job is known")
        live = str(api.get(path).json()["id"])
        yield Scene(api, browser, _csrf(browser), teams["llm"], live, server, database)


def test_no_route_that_changes_something_is_missing_here() -> None:
    unsafe = {
        (one.method, one.path)
        for one in routes.every(create_app(ServerSettings()))
        if not one.is_safe and one.path not in CHANGES_NOTHING
    }

    assert unsafe - ACTS.keys() == set(), "say in ACTS how to do it, and what is then on record"
    assert ACTS.keys() - unsafe == set()


@pytest.mark.parametrize("route", ACTS, ids=" ".join)
def test_what_was_done_is_on_record(at: Scene, route: tuple[str, str]) -> None:
    act, action = ACTS[route]
    before = at.api.get("/api/v1/audit?limit=1").json()["items"]

    answer = act(at)

    assert answer.status_code < 400, answer.text
    rows = at.api.get("/api/v1/audit?limit=5").json()["items"]
    new = rows[: rows.index(before[0])] if before else rows
    assert action in [row["action"] for row in new]
    newest = new[0]
    assert newest["who"]
    assert newest["subject"]


def test_no_secret_is_on_record(at: Scene) -> None:
    text = str(at.token()["token"])

    trail = at.api.get("/api/v1/audit?limit=500").text

    assert text not in trail
    assert at.server.admin_token not in trail
