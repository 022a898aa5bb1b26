"""Incidents through the API: a rank that is gone while another waits for it, and what people do."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.support import synthetic_agent, waiting
from tests.support.running_server import RunningServer

from hangwatch_agent import wire

pytestmark = pytest.mark.integration

LAUNCH = wire.Launch(key="launch that hangs", name="gpt-hung")


@pytest.fixture(scope="module")
def hung_job(api_server: RunningServer) -> Iterator[dict[str, Any]]:
    """The verdict of a job whose rank 1 is gone, once it is an incident."""
    token = api_server.new_token("agent", "node-hung")
    with (
        synthetic_agent.beating(api_server.url, token, "node-hung", LAUNCH) as agent,
        api_server.client() as client,
    ):

        def job_in(state: str) -> dict[str, Any] | None:
            answer = client.get(f"/api/v1/jobs/by-name/{LAUNCH.name}")
            is_there = answer.status_code == 200 and answer.json()["state"] == state
            return dict(answer.json()["verdict"]) if is_there else None

        waiting.until(lambda: job_in("healthy"), 90, "the job is healthy")
        agent.is_gone = True
        yield waiting.until(lambda: job_in("hung") or job_in("failed"), 90, "the job is hung")


@pytest.fixture
def incident(hung_job: dict[str, Any]) -> str:
    assert hung_job["incident"]
    return str(hung_job["incident"])


def test_the_verdict_names_the_rank_that_is_gone(hung_job: dict[str, Any]) -> None:
    assert (hung_job["kind"], hung_job["culprit_ranks"]) == ("missing_ranks", "1")
    assert hung_job["path"][0]["for"] == [1]


def test_an_incident_is_listed_by_job_and_node(
    admin: httpx.Client, hung_job: dict[str, Any], incident: str
) -> None:
    by_job = admin.get("/api/v1/incidents", params={"job": hung_job["job"]}).json()["items"]
    by_node = admin.get("/api/v1/incidents", params={"node": "node-hung"}).json()["items"]
    elsewhere = admin.get("/api/v1/incidents", params={"node": "node-other"}).json()["items"]

    assert [row["id"] for row in by_job] == [row["id"] for row in by_node] == [incident]
    assert elsewhere == []


def test_an_incident_holds_its_verdict_and_history(admin: httpx.Client, incident: str) -> None:
    document = admin.get(f"/api/v1/incidents/{incident}").json()

    assert document["state"] == "confirmed"
    assert document["verdict"]["incident"] == incident
    assert document["history"]
    assert admin.get(f"/api/v1/incidents/{incident}/captures").status_code == 200


def test_the_stacks_of_an_incident_are_one_tree_over_its_captures(
    admin: httpx.Client, incident: str
) -> None:
    url = f"/api/v1/incidents/{incident}/tree"

    classes = waiting.until(lambda: admin.get(url).json()["classes"], 90, "a capture is stored")

    assert [(row["ranks"], row["where"]) for row in classes] == [("0", "train.py:40 in train_step")]


def test_acknowledging_twice_is_no_error(admin: httpx.Client, incident: str) -> None:
    url = f"/api/v1/incidents/{incident}/acknowledge"

    first = admin.post(url, json={"comment": "on it"})
    again = admin.post(url)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["acknowledged_by"] == "admin"
    assert "on it" in [event["why"] for event in again.json()["history"]]


def test_a_snooze_has_an_end(admin: httpx.Client, incident: str) -> None:
    url = f"/api/v1/incidents/{incident}/snooze"

    snoozed = admin.post(url, json={"for": "1h"})

    assert snoozed.status_code == 200
    assert snoozed.json()["snoozed_until"] is not None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"for": "1h", "until": "2099-01-01T00:00:00Z"},
        {"for": "90d"},
        {"for": "0s"},
        {"until": "2020-01-01T00:00:00Z"},
        {"until": "2099-01-01T00:00:00"},
    ],
)
def test_a_snooze_without_a_sensible_end_is_refused(
    admin: httpx.Client, incident: str, body: dict[str, str]
) -> None:
    assert admin.post(f"/api/v1/incidents/{incident}/snooze", json=body).status_code == 422


def test_what_people_did_is_on_record(admin: httpx.Client, incident: str) -> None:
    admin.post(f"/api/v1/incidents/{incident}/acknowledge")

    newest = admin.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]

    assert (newest["action"], newest["subject"]) == ("acknowledge", f"incident:{incident}")


def test_hold_on_a_hung_job_says_whether_evidence_is_stored(
    admin: httpx.Client, hung_job: dict[str, Any]
) -> None:
    held = admin.post(f"/api/v1/jobs/{hung_job['job']}/hold", params={"timeout": "20s"}).json()

    assert held["state"] in {"hung", "failed"}
    assert held["incident"] == hung_job["incident"]


def test_a_snooze_may_last_until_the_job_ends(admin: httpx.Client, incident: str) -> None:
    snoozed = admin.post(f"/api/v1/incidents/{incident}/snooze", json={"until_job_ends": True})

    assert snoozed.status_code == 200
    assert snoozed.json()["is_snoozed_to_end"] is True
    assert snoozed.json()["snoozed_until"] is not None


def test_a_comment_is_kept_and_on_record(admin: httpx.Client, incident: str) -> None:
    url = f"/api/v1/incidents/{incident}/comments"

    said = admin.post(url, json={"text": "  drained node-hung  "})

    assert said.status_code == 201
    assert [note["text"] for note in said.json()["comments"]] == ["drained node-hung"]
    newest = admin.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]
    assert (newest["action"], newest["detail"]) == ("comment", "drained node-hung")
    assert admin.post(url, json={"text": "   "}).status_code == 422
    assert admin.post("/api/v1/incidents/none/comments", json={"text": "x"}).status_code == 404


def test_the_moment_of_a_hang_is_kept_with_its_groups_and_processes(
    admin: httpx.Client, incident: str
) -> None:
    url = f"/api/v1/incidents/{incident}/moments"

    kept = waiting.until(lambda: admin.get(url).json(), 20, "a moment is kept")

    facts = {one["rank"]: one for one in kept[-1]["ranks"]}
    assert facts[1]["process"]["state"] == "gone"
    assert kept[-1]["groups"][0]["behind"] == "1"
    assert [lane["ranks"] for lane in kept[-1]["lanes"]]


def test_the_path_of_an_incident_leads_to_its_culprit(admin: httpx.Client, incident: str) -> None:
    steps = admin.get(f"/api/v1/incidents/{incident}/path", params={"rank": 0}).json()

    assert [step["rank"] for step in steps] == [0, 1]
    assert steps[0]["for"] == [1]


@pytest.mark.parametrize("prefix", ["/api/v1", ""])
def test_the_bundle_holds_all_that_is_known(
    admin: httpx.Client, incident: str, prefix: str
) -> None:
    waiting.until(
        lambda: admin.get(f"/api/v1/incidents/{incident}/tree").json()["classes"],
        20,
        "a capture is stored",
    )

    answer = admin.get(f"{prefix}/incidents/{incident}/bundle.zip")

    assert answer.headers["content-type"] == "application/zip"
    bundle = zipfile.ZipFile(io.BytesIO(answer.content))
    assert bundle.testzip() is None
    names = bundle.namelist()
    assert {"README.txt", "incident.txt", "incident.json", "moments.json"} <= set(names)
    assert json.loads(bundle.read("incident.json"))["verdict"]["path"][0]["for"] == [1]
    parts = [name for name in names if name.endswith("/parts.jsonl")]
    lines = [json.loads(line) for name in parts for line in bundle.read(name).splitlines()]
    assert "train_step" in json.dumps(lines)
    assert any("train_step" in bundle.read(n).decode() for n in names if n.endswith("stacks.txt"))


def test_one_address_gives_text_and_json_too(admin: httpx.Client, incident: str) -> None:
    text = admin.get(f"/incidents/{incident}", headers={"accept": "text/plain"})
    document = admin.get(f"/incidents/{incident}", headers={"accept": "application/json"})

    assert text.text.startswith("gpt-hung: ")
    assert document.json()["id"] == incident
