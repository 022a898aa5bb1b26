"""Sessions and tokens that are over: what was copied before is worth nothing afterwards."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import httpx
import pytest
from tests.integration.access.conftest import client_from
from tests.support import postgres, waiting
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration


@contextlib.contextmanager
def signed_in(server: RunningServer, token: str) -> Iterator[httpx.Client]:
    with client_from(server) as client:
        assert client.post("/login", data={"token": token}).status_code == 303
        yield client


def csrf_of(client: httpx.Client) -> str:
    found = re.search(r'name="csrf_token" value="([0-9a-f]+)"', client.get("/").text)
    assert found is not None
    return found[1]


@pytest.fixture
def made(admin: httpx.Client) -> dict[str, str]:
    body = {"name": "of a session", "scopes": ["operate"]}
    return dict(admin.post("/api/v1/tokens", json=body).json())


@pytest.fixture
def browser(server: RunningServer, made: dict[str, str]) -> Iterator[httpx.Client]:
    with signed_in(server, made["token"]) as client:
        yield client


def test_a_cookie_that_was_copied_is_worthless_after_the_logout(
    server: RunningServer, browser: httpx.Client
) -> None:
    with client_from(server) as thief:
        thief.cookies.update(browser.cookies)
        assert thief.get("/").status_code == 200

        browser.post("/logout", data={"csrf_token": csrf_of(browser)})

        assert thief.get("/").status_code == 303
        assert thief.get("/api/v1/jobs").status_code == 401


def test_signing_in_again_gives_another_cookie(
    server: RunningServer, made: dict[str, str], browser: httpx.Client
) -> None:
    with signed_in(server, made["token"]) as again:
        assert dict(again.cookies) != dict(browser.cookies)


def test_revoking_a_token_ends_its_sessions(
    admin: httpx.Client, made: dict[str, str], browser: httpx.Client
) -> None:
    assert browser.get("/").status_code == 200

    admin.delete(f"/api/v1/tokens/{made['id']}")

    assert browser.get("/").status_code == 303


def test_a_session_ends_with_its_time(
    server: RunningServer, database: str, browser: httpx.Client
) -> None:
    assert browser.get("/").status_code == 200
    with postgres.plain_connection(database) as connection:
        connection.execute("UPDATE sessions SET expires_at = now() WHERE who = 'of a session'")

    waiting.until(lambda: browser.get("/").status_code == 303, 20, "the answer is forgotten")


def test_a_token_ends_with_its_time(server: RunningServer, admin: httpx.Client) -> None:
    body = {"name": "short", "scopes": ["read"], "expires_in": "1s"}
    text = admin.post("/api/v1/tokens", json=body).json()["token"]

    with server.client(text) as client:
        waiting.until(lambda: client.get("/api/v1/jobs").status_code == 401, 20, "it expires")


def test_what_is_stored_of_a_session_is_no_cookie(
    database: str, server: RunningServer, browser: httpx.Client
) -> None:
    with postgres.plain_connection(database) as connection:
        rows = connection.execute("SELECT * FROM sessions").fetchall()

    assert rows
    assert browser.cookies["hangwatch_session"] not in str(rows)


def test_wrong_tokens_from_one_address_are_slowed_and_right_ones_are_not(
    server: RunningServer, made: dict[str, str]
) -> None:
    headers = {"accept": "application/json"}
    with client_from(server, "127.0.0.66", headers) as guesser:
        guesser.headers["authorization"] = "Bearer hw_00000000_guess"
        answers = [guesser.get("/api/v1/jobs") for _ in range(8)]
        form = guesser.post("/login", data={"token": "guess"}, headers={"authorization": ""})
        guesser.headers["authorization"] = f"Bearer {made['token']}"
        right = guesser.get("/api/v1/jobs")

    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 3
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert form.status_code == 429
    assert "wrong tokens" in form.text
    assert right.status_code == 200
    with client_from(server, "127.0.0.67", headers) as other:
        other.headers["authorization"] = "Bearer hw_00000000_typo"
        assert other.get("/api/v1/jobs").status_code == 401


def test_captures_of_one_caller_are_slowed(server: RunningServer, admin: httpx.Client) -> None:
    body = {"name": "eager", "scopes": ["operate"]}
    text = admin.post("/api/v1/tokens", json=body).json()["token"]

    with server.client(text) as eager:
        statuses = [
            eager.post("/api/v1/jobs/nope/captures", json={}).status_code for _ in range(20)
        ]

    assert statuses[:10] == [404] * 10
    assert 429 in statuses[10:]


def test_a_machines_token_opens_no_page(server: RunningServer) -> None:
    text = server.new_token("agent", "node-of-a-form")
    with client_from(server) as browser:
        answer = browser.post("/login", data={"token": text})

    assert answer.status_code == 401
    assert not browser.cookies


def test_who_came_and_went_is_on_record(admin: httpx.Client, browser: httpx.Client) -> None:
    browser.post("/logout", data={"csrf_token": csrf_of(browser)})

    rows = admin.get("/api/v1/audit", params={"limit": 2}).json()["items"]
    assert [(row["who"], row["action"]) for row in rows] == [
        ("of a session", "logout"),
        ("of a session", "login"),
    ]
