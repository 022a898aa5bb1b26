"""`Idempotency-Key`: what is created under one key is created once, on a real server."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.support.running_server import RunningServer

from hangwatch_server.db import idempotency
from hangwatch_server.db.engine import Database

pytestmark = pytest.mark.integration


def new_key() -> dict[str, str]:
    return {"idempotency-key": uuid.uuid4().hex}


def captures_of(admin: httpx.Client, job: str) -> list[str]:
    items = admin.get(f"/api/v1/jobs/{job}/captures", params={"limit": 500}).json()["items"]
    return [item["id"] for item in items]


def test_the_same_request_again_gets_the_first_answer_and_creates_nothing(
    admin: httpx.Client, live_job: str
) -> None:
    key, url = new_key(), f"/api/v1/jobs/{live_job}/captures"

    first = admin.post(url, json={"ranks": "0"}, headers=key)
    before = captures_of(admin, live_job)
    again = admin.post(url, json={"ranks": "0"}, headers=key)

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert captures_of(admin, live_job) == before


def test_two_requests_at_once_under_one_key_create_one_capture(
    api_server: RunningServer, admin: httpx.Client, live_job: str
) -> None:
    key, url = new_key(), f"/api/v1/jobs/{live_job}/captures"
    before = captures_of(admin, live_job)

    def ask(_: int) -> httpx.Response:
        with api_server.client() as client:
            return client.post(url, json={"ranks": "0-1"}, headers=key)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(captures_of(admin, live_job)) == len(before) + 1


def test_a_key_with_another_request_is_refused(admin: httpx.Client, live_job: str) -> None:
    key, url = new_key(), f"/api/v1/jobs/{live_job}/captures"
    admin.post(url, json={"ranks": "0"}, headers=key)

    answer = admin.post(url, json={"ranks": "1"}, headers=key)

    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:hangwatch:key-reused"


def test_a_key_belongs_to_its_caller(
    api_server: RunningServer, admin: httpx.Client, live_job: str
) -> None:
    key, url = new_key(), f"/api/v1/jobs/{live_job}/captures"
    mine = admin.post(url, json={"ranks": "0"}, headers=key).json()["id"]

    with api_server.client(api_server.new_token("operate")) as other:
        theirs = other.post(url, json={"ranks": "0"}, headers=key)

    assert theirs.status_code == 202
    assert theirs.json()["id"] != mine


def test_a_refused_request_leaves_its_key_free(admin: httpx.Client, live_job: str) -> None:
    key, url = new_key(), f"/api/v1/jobs/{live_job}/captures"

    refused = admin.post(url, json={"ranks": "77"}, headers=key)
    good = admin.post(url, json={"ranks": "0"}, headers=key)

    assert (refused.status_code, good.status_code) == (404, 202)


def test_a_reader_learns_nothing_from_the_key_of_another(
    api_server: RunningServer, admin: httpx.Client, live_job: str
) -> None:
    key, url = new_key(), f"/api/v1/jobs/{live_job}/captures"
    admin.post(url, json={"ranks": "0"}, headers=key)

    with api_server.client(api_server.new_token("read")) as reader:
        answer = reader.post(url, json={"ranks": "0"}, headers=key)

    assert answer.status_code == 403


def test_the_text_of_a_token_is_kept_nowhere_and_the_token_is_made_once(
    admin: httpx.Client,
) -> None:
    key, name = new_key(), uuid.uuid4().hex
    body = {"name": name, "scopes": ["read"]}

    first = admin.post("/api/v1/tokens", json=body, headers=key)
    again = admin.post("/api/v1/tokens", json=body, headers=key)

    assert first.status_code == 201
    assert again.status_code == 409
    assert again.json()["type"] == "urn:hangwatch:answer-not-kept"
    assert "revoke" in again.json()["detail"]
    rows = admin.get("/api/v1/tokens").json()["items"]
    assert [row["name"] for row in rows].count(name) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_a_key_that_is_none_is_refused(admin: httpx.Client, live_job: str, key: str) -> None:
    url = f"/api/v1/jobs/{live_job}/captures"

    answer = admin.post(url, json={"ranks": "0"}, headers={"idempotency-key": key})

    assert answer.status_code == 422
    assert "Idempotency-Key" in answer.json()["detail"]


@pytest.mark.anyio
async def test_a_claim_that_its_server_left_behind_is_taken_over(db: Database) -> None:
    key = idempotency.Key(caller="a", key="k", fingerprint="f")
    assert await idempotency.claim(db, key) is None

    held = await idempotency.claim(db, key)
    async with db.begin() as connection:
        await connection.exec_driver_sql(
            "UPDATE idempotency_keys SET claimed_at = now() - interval '2 minutes'"
        )
    outcomes = await asyncio.gather(*(idempotency.claim(db, key) for _ in range(4)))

    assert held is not None
    assert held.status is None
    assert outcomes.count(None) == 1
