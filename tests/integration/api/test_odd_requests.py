"""Requests that no client of good will sends: each is refused in words, none is a defect."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

BODIES = [
    b"",
    b"[]",
    b"null",
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"ranks":"\\ud800"}',
    b'{"\\ud800":1}',
    b'{"ranks":NaN}',
    b'{"ranks":"0-99999999"}',
    b'{"comment":"\\u0000"}',
    b'{"for":"99999999999999s"}',
    b'{"until":"9999-12-31T23:59:59-23:59"}',
    b'{"until":"0001-01-01T00:00:00+23:59"}',
    b'{"until":1e18}',
    b'{"name":"x\\u0000","scopes":["read"]}',
    b'{"name":"x","scopes":["read"],"expires_in":"0s"}',
]
FORMS = [
    ("application/x-www-form-urlencoded", b"a=b&" * 3000),
    ("application/x-www-form-urlencoded", b"ranks=%ED%A0%80&minutes=-1&comment=%00"),
    ("multipart/form-data", b"x"),
    ("multipart/form-data; boundary=x", b"--x\r\n"),
]
CALLS = [
    "/api/v1/jobs/{job}/captures",
    "/api/v1/incidents/nope/snooze",
    "/api/v1/incidents/nope/acknowledge",
    "/api/v1/tokens",
    "/login",
    "/jobs/{job}/captures",
    "/incidents/nope/snooze",
]
TOO_LARGE = 1024 * 1024 + 1


@pytest.mark.parametrize("page", ["/jobs/nope", "/captures/nope", "/incidents/nope", "/nodes/nope"])
def test_the_stream_of_a_page_that_is_not_there_is_not_found(
    admin: httpx.Client, page: str
) -> None:
    assert [admin.get(page).status_code, admin.get(f"{page}/live").status_code] == [404, 404]


@pytest.mark.parametrize("call", CALLS)
def test_a_body_of_any_shape_is_no_defect(admin: httpx.Client, live_job: str, call: str) -> None:
    url = call.format(job=live_job)

    answers = [
        admin.post(url, content=body, headers={"content-type": kind})
        for kind, body in [*(("application/json", body) for body in BODIES), *FORMS]
    ]

    assert [answer.text for answer in answers if answer.status_code >= 500] == []


@pytest.mark.parametrize(
    "query", ["q=%25", "q=_", "q=%5C", "q=%ED%A0%80", "cursor=%FF", "limit=99999999999999999999"]
)
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/incidents", "/api/v1/audit", "/"])
def test_a_query_of_any_text_is_no_defect(admin: httpx.Client, path: str, query: str) -> None:
    assert admin.get(f"{path}?{query}").status_code < 500


@pytest.mark.parametrize("sign", ["%25", "_"])
def test_a_search_takes_the_signs_of_sql_patterns_as_text(
    admin: httpx.Client, live_job: str, sign: str
) -> None:
    assert admin.get(f"/api/v1/jobs?q={sign}").json()["items"] == []


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(
    api_server: RunningServer,
) -> None:
    with api_server.client("") as nobody:
        answer = nobody.post("/api/v1/tokens", content=b"x" * TOO_LARGE)

    assert answer.status_code == 413
    assert answer.json()["type"] == "urn:hangwatch:too-large"


@pytest.mark.parametrize("path", ["/api/v1/tokens", "/login", "/jobs/x/captures"])
def test_a_body_without_a_size_is_refused_once_it_is_too_large(
    admin: httpx.Client, path: str
) -> None:
    kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"

    answer = admin.post(path, content=_pieces(), headers={"content-type": kind})

    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/vendor/htmx.org-9/htmx.min.js", "/static/0123456789ab/x.js"])
def test_a_file_that_is_not_there_yet_is_asked_for_again(admin: httpx.Client, path: str) -> None:
    """Another replica may be newer: a browser that keeps "not found" for a year is broken by it."""
    answer = admin.get(path)

    assert answer.status_code == 404
    assert answer.headers["cache-control"] == "no-cache"


def test_vendored_files_are_kept_for_good(admin: httpx.Client) -> None:
    found = admin.get("/vendor/htmx.org-4.0.1/htmx.min.js")

    assert "immutable" in found.headers["cache-control"]


def _pieces() -> Iterator[bytes]:
    """A body in chunks, which carries no Content-Length."""
    yield b"a="
    yield from [b"x" * 65536] * 17


def test_a_form_with_too_many_fields_is_the_callers_fault(
    admin: httpx.Client, live_job: str
) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}

    answer = admin.post(f"/jobs/{live_job}/captures", content=b"a=b&" * 3000, headers=form)

    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_can_be_asked_by_head(api_server: RunningServer, path: str) -> None:
    with api_server.client("") as monitor:
        answer = monitor.head(path)

    assert (answer.status_code, answer.content) == (200, b"")


def test_any_known_version_is_said_by_a_star(admin: httpx.Client) -> None:
    answer = admin.get("/api/v1/tokens", headers={"if-none-match": "*"})

    assert answer.status_code == 304
