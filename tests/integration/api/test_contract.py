"""What holds for every call: problem documents, headers, paging, ETags, the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

BAD = [
    ("/api/v1/jobs/nope", 404, "not-found", "hangwatch status"),
    ("/api/v1/jobs/by-name/nope", 404, "not-found", "hangwatch status"),
    ("/api/v1/jobs/nope/verdict", 404, "not-found", "hangwatch status"),
    ("/api/v1/jobs/nope/ranks", 404, "not-found", "hangwatch status"),
    ("/api/v1/jobs/nope/ranks?ranks=0-3,7x", 422, "bad-range", "'7x'"),
    ("/api/v1/jobs/nope/verdict?wait=soon", 422, "bad-duration", "'soon'"),
    ("/api/v1/jobs/nope/verdict?wait=10m", 422, "bad-duration", "at most 2m"),
    ("/api/v1/jobs/nope/path?rank=-1", 422, "invalid-request", "query.rank"),
    ("/api/v1/jobs?limit=0", 422, "invalid-request", "query.limit"),
    ("/api/v1/jobs?state=lost", 422, "invalid-request", "query.state"),
    ("/api/v1/jobs?cursor=nonsense", 422, "bad-cursor", "next"),
    ("/api/v1/jobs/a%00b", 400, "bad-request", "NUL"),
    ("/api/v1/incidents/nope", 404, "not-found", "/api/v1/incidents"),
    ("/api/v1/incidents/nope/tree", 404, "not-found", "/api/v1/incidents"),
    ("/api/v1/captures/nope", 404, "not-found", "capture"),
    ("/api/v1/captures/nope.txt", 404, "not-found", "capture"),
    ("/api/v1/captures/nope/tree", 404, "not-found", "capture"),
    ("/api/v1/deliveries/nope", 404, "not-found", "/api/v1/deliveries"),
    ("/api/v1/silences/nope", 404, "not-found", "/api/v1/silences"),
    ("/api/v1/nodes/nope", 404, "not-found", "node"),
    ("/api/v1/nowhere", 404, "not-found", "/openapi.json"),
]


@pytest.mark.parametrize(("path", "status", "slug", "words"), BAD)
def test_a_bad_call_gets_a_problem_document_that_helps(
    admin: httpx.Client, path: str, status: int, slug: str, words: str
) -> None:
    answer = admin.get(path)
    problem = answer.json()

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["type"] == f"urn:hangwatch:{slug}"
    assert problem["status"] == status
    assert problem["title"]
    assert words in problem["detail"]
    assert problem["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/v1/jobs", "GET"),
        ("GET", "/api/v1/jobs/x/hold", "POST"),
        ("PUT", "/api/v1/tokens", "GET"),
        ("DELETE", "/healthz", "GET"),
    ],
)
def test_a_method_that_an_address_does_not_know_is_refused_with_those_it_does(
    admin: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = admin.request(method, path)

    assert answer.status_code == 405
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:hangwatch:method-not-allowed"
    assert allowed in answer.headers["allow"]
    assert allowed in answer.json()["detail"]


def test_every_get_of_the_api_can_be_asked_by_head(admin: httpx.Client) -> None:
    whole = admin.get("/api/v1/tokens")
    head = admin.head("/api/v1/tokens")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == whole.headers["etag"]
    assert head.headers["content-length"] == str(len(whole.content))


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/audit", "/api/v1/tokens"])
def test_every_time_is_rfc_3339_with_a_zone(admin: httpx.Client, live_job: str, path: str) -> None:
    found = list(_times(admin.get(path).json()))

    assert found
    for text in found:
        assert datetime.fromisoformat(text).tzinfo is not None


def _times(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _times(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _times(inner, name)
    elif value is not None and (name in ("at", "since") or name.endswith(("_at", "_seen"))):
        yield value


def test_a_request_id_of_the_caller_is_kept(admin: httpx.Client) -> None:
    answer = admin.get("/api/v1/jobs", headers={"x-request-id": "run-17"})

    assert answer.headers["x-request-id"] == "run-17"


def test_an_unusable_request_id_is_replaced(admin: httpx.Client) -> None:
    answer = admin.get("/api/v1/jobs", headers={"x-request-id": "a b;c"})

    assert len(answer.headers["x-request-id"]) == 32


def test_a_key_that_we_do_not_know_is_refused(admin: httpx.Client) -> None:
    answer = admin.post("/api/v1/jobs/x/captures", json={"rank": "0"})

    assert answer.status_code == 422
    assert "body.rank" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/login", "/api/v1/jobs", "/healthz", "/static/js/main.js"])
def test_every_answer_has_the_security_headers(admin: httpx.Client, path: str) -> None:
    headers = admin.get(path).headers

    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("path", ["/api/v1/tokens", "/api/v1/incidents", "/openapi.json"])
def test_an_unchanged_answer_is_not_sent_again(admin: httpx.Client, path: str) -> None:
    first = admin.get(path)
    again = admin.get(path, headers={"if-none-match": first.headers["etag"]})

    assert first.status_code == 200
    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["etag"] == first.headers["etag"]


def test_a_changed_answer_is_sent_in_full(admin: httpx.Client) -> None:
    etag = admin.get("/api/v1/tokens").headers["etag"]
    admin.post("/api/v1/tokens", json={"name": "changes the list", "scopes": ["read"]})

    assert admin.get("/api/v1/tokens", headers={"if-none-match": etag}).status_code == 200


def test_pages_of_a_list_follow_each_other_without_gap_or_repeat(admin: httpx.Client) -> None:
    for number in range(7):
        admin.post("/api/v1/tokens", json={"name": f"page {number}", "scopes": ["read"]})
    whole = admin.get("/api/v1/audit", params={"limit": 5}).json()["items"]

    url, rows = "/api/v1/audit?limit=2", []
    while len(rows) < 5:
        answer = admin.get(url)
        rows += answer.json()["items"]
        url = answer.links["next"]["url"]
        assert answer.json()["next"] in url

    assert rows[:5] == whole


def test_health_needs_no_token(api_server: RunningServer) -> None:
    with api_server.client("") as nobody:
        assert nobody.get("/healthz").json()["status"] == "ok"
        ready = nobody.get("/readyz").json()

    parts = {"database": "ok", "redis": "off", "background": "ok", "stopping": False}
    assert ready == {"status": "ready", **parts}


def test_metrics_speak_prometheus(admin: httpx.Client) -> None:
    answer = admin.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain")
    assert "hangwatch_http_requests_total{" in answer.text


def operations(admin: httpx.Client) -> list[tuple[str, dict[str, Any]]]:
    document = admin.get("/openapi.json").json()
    return [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_openapi_lists_every_call_of_the_contract(admin: httpx.Client) -> None:
    names = {name for name, _ in operations(admin)}

    assert names == {
        "get /api/v1/audit",
        "get /api/v1/captures/{capture_id}",
        "get /api/v1/captures/{capture_id}.txt",
        "get /api/v1/captures/{capture_id}/chrome-trace",
        "get /api/v1/captures/{capture_id}/compare",
        "get /api/v1/captures/{capture_id}/speedscope",
        "get /api/v1/captures/{capture_id}/tree",
        "get /api/v1/deliveries",
        "get /api/v1/deliveries/{delivery_id}",
        "post /api/v1/deliveries/{delivery_id}/redeliver",
        "post /api/v1/diagnose",
        "get /api/v1/channels",
        "post /api/v1/channels",
        "get /api/v1/channels/kinds",
        "delete /api/v1/channels/{channel_id}",
        "get /api/v1/channels/{channel_id}",
        "patch /api/v1/channels/{channel_id}",
        "post /api/v1/channels/{channel_id}/test",
        "get /api/v1/events",
        "get /api/v1/incidents",
        "get /api/v1/incidents/{incident_id}",
        "post /api/v1/incidents/{incident_id}/acknowledge",
        "get /api/v1/incidents/{incident_id}/action",
        "get /api/v1/incidents/{incident_id}/bundle.zip",
        "get /api/v1/incidents/{incident_id}/captures",
        "post /api/v1/incidents/{incident_id}/comments",
        "get /api/v1/incidents/{incident_id}/moments",
        "get /api/v1/incidents/{incident_id}/path",
        "post /api/v1/incidents/{incident_id}/snooze",
        "get /api/v1/incidents/{incident_id}/tree",
        "get /api/v1/jobs",
        "get /api/v1/jobs/by-name/{name}",
        "delete /api/v1/jobs/{job_id}",
        "get /api/v1/jobs/{job_id}",
        "get /api/v1/jobs/{job_id}/captures",
        "post /api/v1/jobs/{job_id}/captures",
        "get /api/v1/jobs/{job_id}/depths",
        "get /api/v1/jobs/{job_id}/groups",
        "get /api/v1/jobs/{job_id}/groups/{gid}",
        "post /api/v1/jobs/{job_id}/hold",
        "get /api/v1/jobs/{job_id}/lags",
        "get /api/v1/jobs/{job_id}/mesh",
        "get /api/v1/jobs/{job_id}/path",
        "get /api/v1/jobs/{job_id}/ranks",
        "get /api/v1/jobs/{job_id}/ranks/{rank}",
        "get /api/v1/jobs/{job_id}/ranks/{rank}/captures",
        "get /api/v1/jobs/{job_id}/ranks/{rank}/tree",
        "get /api/v1/jobs/{job_id}/timeline",
        "get /api/v1/jobs/{job_id}/verdict",
        "get /api/v1/nodes",
        "get /api/v1/nodes/{name}",
        "get /api/v1/settings",
        "get /api/v1/silences",
        "post /api/v1/silences",
        "delete /api/v1/silences/{silence_id}",
        "get /api/v1/silences/{silence_id}",
        "get /api/v1/tokens",
        "post /api/v1/tokens",
        "delete /api/v1/tokens/{token_id}",
        "get /api/v1/sessions",
        "delete /api/v1/sessions/{session_id}",
        "post /api/v1/agent/enrol",
        "get /healthz",
        "post /login",
        "post /logout",
        "get /metrics",
        "get /readyz",
    }


def test_every_call_has_a_summary_and_an_example(admin: httpx.Client) -> None:
    for name, operation in operations(admin):
        assert operation.get("summary"), name
        status, response = next(iter(operation["responses"].items()))
        for media, content in response.get("content", {}).items():
            is_text = media != "application/zip"
            assert "example" in content or not is_text, f"{name} {status}"


def test_errors_are_documented_under_their_true_media_type(admin: httpx.Client) -> None:
    for name, operation in operations(admin):
        if name.split()[1].startswith("/api/"):
            for status in ("401", "403", "404", "422"):
                content = operation["responses"][status]["content"]
                assert list(content) == ["application/problem+json"], name


def test_openapi_uses_no_word_that_its_version_lacks(admin: httpx.Client) -> None:
    document = admin.get("/openapi.json")

    assert document.json()["openapi"].startswith("3.1")
    assert "itemSchema" not in document.text
