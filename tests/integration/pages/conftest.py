"""One server process and one synthetic agent for all tests of pages on the real thing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import httpx
import pytest
from tests.support import running_server, synthetic_agent, waiting
from tests.support.running_server import RunningServer


@pytest.fixture(scope="session")
def house(migrated: str) -> Iterator[RunningServer]:
    with running_server.on_fresh_database(migrated) as server:
        yield server


@pytest.fixture(scope="session")
def job(house: RunningServer) -> Iterator[str]:
    """Id of a job of two ranks that makes progress all the time."""
    token = house.new_token("agent", "node-live")
    with (
        synthetic_agent.beating(house.url, token, "node-live") as agent,
        house.client() as client,
    ):

        def known() -> str | None:
            answer = client.get(f"/api/v1/jobs/by-name/{agent.launch.name}")
            is_up = answer.status_code == 200 and answer.json()["state"] == "healthy"
            return str(answer.json()["id"]) if is_up else None

        yield waiting.until(known, 60, "the synthetic job makes progress")


@contextlib.contextmanager
def signed_in(house: RunningServer, scope: str) -> Iterator[httpx.Client]:
    """A browser's client: a session cookie and no token."""
    token = house.admin_token if scope == "admin" else house.new_token(scope)
    with house.client("") as client:
        client.headers["accept"] = "text/html"
        answer = client.post("/login", data={"token": token})
        assert answer.status_code == 303
        yield client


@pytest.fixture
def admin(house: RunningServer) -> Iterator[httpx.Client]:
    with signed_in(house, "admin") as client:
        yield client


@pytest.fixture
def operator(house: RunningServer) -> Iterator[httpx.Client]:
    with signed_in(house, "operate") as client:
        yield client
