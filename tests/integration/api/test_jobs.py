"""Jobs, verdicts, ranks, groups, captures and events, of a synthetic job over the real wire."""

from __future__ import annotations

import itertools
import threading

import httpx
import pytest
from tests.support import synthetic_agent, waiting
from tests.support.running_server import RunningServer

from hangwatch_agent import wire

pytestmark = pytest.mark.integration


def test_a_live_job_is_listed_with_its_verdict(admin: httpx.Client, live_job: str) -> None:
    jobs = admin.get("/api/v1/jobs", params={"q": "gpt-test"}).json()["items"]

    assert [job["id"] for job in jobs] == [live_job]
    assert jobs[0]["verdict"]["job"] == live_job
    assert (jobs[0]["reporting"], jobs[0]["world_size"]) == (2, 2)


def test_a_job_is_found_by_id_and_by_name(admin: httpx.Client, live_job: str) -> None:
    by_id = admin.get(f"/api/v1/jobs/{live_job}").json()
    by_name = admin.get("/api/v1/jobs/by-name/gpt-test").json()

    assert by_id["id"] == by_name["id"] == live_job


def test_a_verdict_has_the_fields_of_the_contract(admin: httpx.Client, live_job: str) -> None:
    verdict = admin.get(f"/api/v1/jobs/{live_job}/verdict").json()

    assert {
        "job", "name", "attempt", "index", "state", "kind", "confidence", "since", "stalled_s",
        "summary", "group", "seq", "op", "culprits", "culprit_ranks", "waiting", "path", "evidence",
        "hints", "coverage", "action", "limits", "incident",
    } <= verdict.keys()  # fmt: skip


def test_a_verdict_in_one_word_is_the_state(admin: httpx.Client, live_job: str) -> None:
    url = f"/api/v1/jobs/{live_job}/verdict"

    plain = admin.get(url, params={"format": "plain"})

    assert plain.headers["content-type"].startswith("text/plain")
    assert plain.text.strip() in {"starting", "healthy"}


def test_a_verdict_with_an_old_or_future_index_comes_at_once(
    admin: httpx.Client, live_job: str
) -> None:
    url = f"/api/v1/jobs/{live_job}/verdict"

    answer = admin.get(url, params={"wait": "120s", "index": 10**9}, timeout=60)

    assert answer.status_code == 200


def test_ranks_come_in_pages_and_ranges(admin: httpx.Client, live_job: str) -> None:
    url = f"/api/v1/jobs/{live_job}/ranks"

    first = admin.get(url, params={"limit": 1})
    second = admin.get(first.links["next"]["url"]).json()
    only = admin.get(url, params={"ranks": "1"}).json()["items"]

    assert [row["rank"] for row in first.json()["items"]] == [0]
    assert [row["rank"] for row in second["items"]] == [1]
    assert second["next"] is None
    assert [(row["rank"], row["node"], row["pid"]) for row in only] == [(1, "node-live", 1001)]


def test_a_group_has_members_when_asked_for_alone(admin: httpx.Client, live_job: str) -> None:
    groups = admin.get(f"/api/v1/jobs/{live_job}/groups").json()["items"]
    group = admin.get(f"/api/v1/jobs/{live_job}/groups/{groups[0]['gid']}").json()

    assert [row["name"] for row in groups] == ["dp"]
    assert groups[0]["members"] == []
    assert [member["rank"] for member in group["members"]] == [0, 1]


def test_an_unknown_group_or_rank_is_not_found(admin: httpx.Client, live_job: str) -> None:
    assert admin.get(f"/api/v1/jobs/{live_job}/groups/nope").status_code == 404
    assert admin.get(f"/api/v1/jobs/{live_job}/path", params={"rank": 7}).status_code == 404


def test_mesh_lags_and_depths_of_a_healthy_job(admin: httpx.Client, live_job: str) -> None:
    mesh = admin.get(f"/api/v1/jobs/{live_job}/mesh").json()
    lags = admin.get(f"/api/v1/jobs/{live_job}/lags", params={"family": "data parallel"}).json()
    depths = admin.get(f"/api/v1/jobs/{live_job}/depths").json()

    assert [(one["name"], one["count"]) for one in mesh["families"]] == [("data parallel", 1)]
    assert [lag["rank"] for lag in lags] == [0, 1]
    assert all(lag["lag"] is not None for lag in lags)
    assert [(row["nodes"], row["depth"]) for row in depths] == [(["node-live"], "probe")]


def test_lags_of_an_unknown_group_are_not_found(admin: httpx.Client, live_job: str) -> None:
    answer = admin.get(f"/api/v1/jobs/{live_job}/lags", params={"group": "nope"})

    assert answer.status_code == 404


def test_path_and_timeline_answer_for_a_healthy_job(admin: httpx.Client, live_job: str) -> None:
    assert admin.get(f"/api/v1/jobs/{live_job}/path", params={"rank": 0}).json() == []
    assert admin.get(f"/api/v1/jobs/{live_job}/timeline").status_code == 200


def test_hold_on_a_healthy_job_answers_at_once(admin: httpx.Client, live_job: str) -> None:
    held = admin.post(
        f"/api/v1/jobs/{live_job}/hold", params={"timeout": "120s"}, timeout=60
    ).json()

    assert held["evidence_stored"] is False
    assert held["state"] in {"starting", "healthy"}


def test_a_capture_goes_from_request_to_merged_stacks(admin: httpx.Client, live_job: str) -> None:
    asked = admin.post(f"/api/v1/jobs/{live_job}/captures", json={"ranks": "0-1"})
    assert asked.status_code == 202

    url = asked.headers["location"]
    capture = admin.get(url, params={"wait": "90s"}, timeout=120).json()
    tree = admin.get(f"{url}/tree").json()
    text = admin.get(f"{url}.txt")

    assert capture["state"] == "complete"
    assert [part["has_stacks"] for part in capture["parts"]] == [True, True]
    assert sorted(row["ranks"] for row in tree["classes"]) == ["0", "1"]
    assert tree["classes"][0]["frames"][0]["name"] == "train_step"
    assert text.headers["content-type"].startswith("text/plain")
    assert "train_step" in text.text


def test_a_capture_is_exported_listed_and_compared(admin: httpx.Client, live_job: str) -> None:
    def taken() -> str:
        asked = admin.post(f"/api/v1/jobs/{live_job}/captures", json={"ranks": "0-1"}).json()
        admin.get(f"/api/v1/captures/{asked['id']}", params={"wait": "30s"}, timeout=40)
        return str(asked["id"])

    before, after = taken(), taken()
    url = f"/api/v1/captures/{after}"

    scope = admin.get(f"{url}/speedscope")
    trace = admin.get(f"{url}/chrome-trace").json()
    listed = admin.get(f"/api/v1/jobs/{live_job}/captures", params={"limit": 2}).json()["items"]
    compared = admin.get(f"{url}/compare", params={"before": before}).json()
    tree = admin.get(f"{url}/tree").json()

    assert f"{after}.speedscope.json" in scope.headers["content-disposition"]
    assert sum(scope.json()["profiles"][0]["weights"]) == 2
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X"}
    assert [row["id"] for row in listed] == [after, before]
    assert (compared["before"]["id"], compared["after"]["id"]) == (before, after)
    assert tree["before"] == before


def test_a_capture_is_on_record_with_who_asked(admin: httpx.Client, live_job: str) -> None:
    capture = admin.post(f"/api/v1/jobs/{live_job}/captures", json={"ranks": "0"}).json()

    newest = admin.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]

    assert capture["requested_by"] == "admin"
    assert (newest["action"], newest["subject"]) == ("capture", f"job:{live_job}")
    assert newest["detail"] == capture["id"]


def test_a_capture_of_bad_or_absent_ranks_is_refused(admin: httpx.Client, live_job: str) -> None:
    url = f"/api/v1/jobs/{live_job}/captures"

    bad = admin.post(url, json={"ranks": "0-3,zero"})
    absent = admin.post(url, json={"ranks": "77"})

    assert (bad.status_code, bad.json()["type"]) == (422, "urn:hangwatch:bad-range")
    assert "'zero'" in bad.json()["detail"]
    assert absent.status_code == 404


def test_a_capture_of_a_job_never_seen_is_not_found(admin: httpx.Client) -> None:
    assert admin.post("/api/v1/jobs/nope/captures", json={}).status_code == 404


def test_a_live_job_cannot_be_deleted(admin: httpx.Client, live_job: str) -> None:
    answer = admin.delete(f"/api/v1/jobs/{live_job}")

    assert answer.status_code == 409
    assert "stop it" in answer.json()["detail"]


def test_the_agents_node_is_listed(admin: httpx.Client, live_job: str) -> None:
    node = admin.get("/api/v1/nodes/node-live").json()

    assert node["link"] == "live"
    assert node["jobs"] == [live_job]
    assert "node-live" in [row["name"] for row in admin.get("/api/v1/nodes").json()["items"]]


def test_a_long_poll_wakes_when_the_verdict_changes(
    api_server: RunningServer, admin: httpx.Client
) -> None:
    token = api_server.new_token("agent", "node-poll")
    launch = wire.Launch(key="launch that ends", name="gpt-poll")
    with synthetic_agent.beating(api_server.url, token, "node-poll", launch) as agent:

        def settled() -> dict[str, object] | None:
            answer = admin.get("/api/v1/jobs/by-name/gpt-poll")
            is_up = answer.status_code == 200 and answer.json()["state"] == "healthy"
            return answer.json()["verdict"] if is_up else None

        before = waiting.until(settled, 90, "the job is healthy")
        threading.Timer(0.5, setattr, (agent, "is_ended", True)).start()
        url = f"/api/v1/jobs/{before['job']}/verdict"
        after = admin.get(url, params={"wait": "60s", "index": before["index"]}, timeout=90).json()

    assert after["index"] > before["index"]
    assert after["state"] == "finished"


def test_events_say_which_job_changed(
    api_server: RunningServer, admin: httpx.Client, live_job: str
) -> None:
    with admin.stream("GET", "/api/v1/events", timeout=90) as stream:
        lines = stream.iter_lines()
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert next(lines) == "event: open"
        token = api_server.new_token("agent", "node-event")
        launch = wire.Launch(key="launch with events", name="gpt-events")
        with synthetic_agent.beating(api_server.url, token, "node-event", launch):
            kinds = (line for line in lines if line.startswith("event: "))
            assert "event: jobs" in itertools.islice(kinds, 100)


def test_a_node_with_a_slash_in_its_name_has_its_row_page_and_stream(
    api_server: RunningServer, admin: httpx.Client
) -> None:
    token = api_server.new_token("agent", "rack-1/node-a")
    launch = wire.Launch(key="launch in a rack", name="gpt-rack")
    with synthetic_agent.beating(api_server.url, token, "rack-1/node-a", launch):
        row = admin.get("/api/v1/nodes/rack-1/node-a")
        page = admin.get("/nodes/rack-1%2Fnode-a")
        with admin.stream("GET", "/nodes/rack-1/node-a/live") as stream:
            kind = stream.headers["content-type"]

    assert row.json()["name"] == "rack-1/node-a"
    assert (page.status_code, "rack-1/node-a" in page.text) == (200, True)
    assert kind.startswith("text/event-stream")


def test_lists_as_text_have_a_line_per_row_and_no_empty_field(
    admin: httpx.Client, live_job: str
) -> None:
    plain = {"format": "plain"}

    jobs = admin.get("/api/v1/jobs", params=plain | {"q": "gpt-test"})
    ranks = admin.get(f"/api/v1/jobs/{live_job}/ranks", params=plain | {"limit": "1"})
    nodes = admin.get("/api/v1/nodes", params=plain).text.splitlines()

    assert jobs.headers["content-type"].startswith("text/plain")
    assert jobs.text.split("\t")[:3] == [live_job, "healthy", "gpt-test"]
    assert ranks.text.split("\t")[:4] == ["0", "healthy", "node-live", "1000"]
    assert "cursor=1" in ranks.links["next"]["url"]
    assert "node-live" in [line.split("\t")[0] for line in nodes]
    assert all(field for line in nodes for field in line.split("\t"))
    assert admin.get("/api/v1/incidents", params=plain).status_code == 200


def test_a_hold_on_a_job_that_failed_waits_for_nothing(
    api_server: RunningServer, admin: httpx.Client
) -> None:
    token = api_server.new_token("agent", "node-failed")
    launch = wire.Launch(key="launch that fails", name="gpt-failed")
    with synthetic_agent.beating(api_server.url, token, "node-failed", launch) as agent:
        job = waiting.until(
            lambda: _named(admin, "gpt-failed", "healthy"), 90, "the job is healthy"
        )
        agent.exit_code, agent.is_ended = 1, True
        waiting.until(lambda: _named(admin, "gpt-failed", "failed"), 90, "the job has failed")
        held = admin.post(
            f"/api/v1/jobs/{job['id']}/hold", params={"timeout": "120s"}, timeout=60
        ).json()

    assert (held["state"], held["evidence_stored"]) == ("failed", False)


def _named(admin: httpx.Client, name: str, state: str) -> dict[str, str] | None:
    answer = admin.get(f"/api/v1/jobs/by-name/{name}")
    is_so = answer.status_code == 200 and answer.json()["state"] == state
    return answer.json() if is_so else None
