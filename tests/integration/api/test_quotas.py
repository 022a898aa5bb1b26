"""Calls that stay open, on a server that allows few of them: the rest is told to come again."""

from __future__ import annotations

import contextlib
import html
import threading
from collections.abc import Iterator

import httpx
import pytest
from tests.support import postgres, raw_http, running_server, synthetic_agent, waiting
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

FEW = {
    "HANGWATCH_STREAMS_EACH": "1",
    "HANGWATCH_STREAMS_MOST": "2",
    "HANGWATCH_WAITING_EACH": "1",
    "HANGWATCH_BUNDLES_EACH": "0",
}


@pytest.fixture(scope="module")
def strict_server(migrated: str) -> Iterator[RunningServer]:
    with (
        postgres.fresh_database(migrated, postgres.TEMPLATE) as url,
        postgres.data_folder() as folder,
        running_server.running(url, folder, FEW) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def verdict(strict_server: RunningServer) -> Iterator[dict[str, object]]:
    """Of a job that stays healthy."""
    token = strict_server.new_token("agent", "node-quota")
    with (
        synthetic_agent.beating(strict_server.url, token, "node-quota"),
        strict_server.client() as client,
    ):

        def found() -> dict[str, object] | None:
            items = client.get("/api/v1/jobs").json()["items"]
            return items[0]["verdict"] if items and items[0]["state"] == "healthy" else None

        yield waiting.until(found, 90, "the job is healthy")


def refused(answer: httpx.Response, word: str) -> bool:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:hangwatch:too-many-requests"
    assert word in answer.json()["detail"]
    return answer.status_code == 429 and int(answer.headers["retry-after"]) > 0


@contextlib.contextmanager
def reading(client: httpx.Client, path: str) -> Iterator[int]:
    """An open stream, and the status that it began with."""
    with client.stream("GET", path) as stream:
        parts = stream.iter_bytes()  # closed with the stream, and it with them
        if stream.status_code == 200:
            next(parts)
        yield stream.status_code


@pytest.mark.parametrize("path", ["/api/v1/events", "/nodes/live"])
def test_a_reader_has_as_many_streams_as_allowed_and_then_is_told_to_wait(
    strict_server: RunningServer, path: str
) -> None:
    with (
        strict_server.client() as one,
        strict_server.client(strict_server.new_token("read")) as other,
    ):
        with reading(one, path) as first, reading(other, path) as others:
            second = one.get(path, timeout=10)

        assert (first, others) == (200, 200)
        assert second.status_code == 429
        assert int(second.headers["retry-after"]) > 0
        assert "1 event streams open, as many as one may" in html.unescape(second.text)
        waiting.until(lambda: _is_open(one, path), 60, "a place that was left is free again")


def _is_open(client: httpx.Client, path: str) -> bool:
    with client.stream("GET", path) as stream:
        return stream.status_code == 200


def test_a_caller_waits_as_often_as_allowed(
    strict_server: RunningServer, verdict: dict[str, object]
) -> None:
    path = f"/api/v1/jobs/{verdict['job']}/verdict"
    asked = {"wait": "5s", "index": str(verdict["index"])}
    with strict_server.client() as client, strict_server.client() as waiter:

        def wait_once() -> None:
            while waiter.get(path, params=asked).status_code == 429:
                """The other one was faster."""

        first = threading.Thread(target=wait_once)
        first.start()
        second = waiting.until(
            lambda: _if_refused(client, path, asked | {"wait": "10ms"}), 60, "one waits already"
        )
        at_once = client.get(path)
        first.join()

    assert refused(second, "waiting calls")
    assert at_once.status_code == 200


def test_who_leaves_a_long_poll_gives_the_place_back_at_once(
    strict_server: RunningServer, verdict: dict[str, object]
) -> None:
    path = f"/api/v1/jobs/{verdict['job']}/verdict?wait=120s&index={verdict['index']}"
    token = strict_server.admin_token
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    short = {"wait": "10ms", "index": str(verdict["index"])}
    with strict_server.client() as client:
        with raw_http.connected(strict_server.url) as line:
            line.sendall(head.encode())
            bare = f"/api/v1/jobs/{verdict['job']}/verdict"
            waiting.until(lambda: _if_refused(client, bare, short), 60, "it waits")

        waiting.until(
            lambda: client.get(bare, params=short).status_code == 200, 30, "the place is free"
        )


def _if_refused(client: httpx.Client, path: str, asked: dict[str, str]) -> httpx.Response | None:
    answer = client.get(path, params=asked)
    return answer if answer.status_code == 429 else None


def test_what_was_refused_is_counted(strict_server: RunningServer) -> None:
    with strict_server.client() as client:
        client.get("/api/v1/incidents/any/bundle.zip")
        page = client.get("/incidents/any/bundle.zip", headers={"accept": "text/html"})
        text = client.get("/metrics").text

    assert page.status_code == 429
    assert "as many as one may" in page.text
    assert 'hangwatch_calls_refused_total{what="bundles"}' in text
