"""One server process and one synthetic agent for all tests of the API."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.support import running_server, synthetic_agent, waiting
from tests.support.running_server import RunningServer
from tests.support.synthetic_agent import SyntheticAgent

# All these tests share one server and one address; tests/integration/access has the limits.
UNLIMITED = {"HANGWATCH_CAPTURES_PER_MINUTE": "0", "HANGWATCH_FAILURES_PER_MINUTE": "0"}


@pytest.fixture(scope="session")
def api_server(migrated: str) -> Iterator[RunningServer]:
    with running_server.on_fresh_database(migrated, UNLIMITED) as server:
        yield server


@pytest.fixture
def admin(api_server: RunningServer) -> Iterator[httpx.Client]:
    with api_server.client() as client:
        yield client


@pytest.fixture(scope="session")
def live_agent(api_server: RunningServer) -> Iterator[SyntheticAgent]:
    token = api_server.new_token("agent", "node-live")
    with synthetic_agent.beating(api_server.url, token, "node-live") as agent:
        yield agent


@pytest.fixture(scope="session")
def live_job(api_server: RunningServer, live_agent: SyntheticAgent) -> str:
    """Id of a job of two ranks that makes progress all the time."""
    with api_server.client() as client:

        def job() -> str | None:
            answer = client.get(f"/api/v1/jobs/by-name/{live_agent.launch.name}")
            is_up = answer.status_code == 200 and answer.json()["reporting"] == 2
            return str(answer.json()["id"]) if is_up else None

        return waiting.until(job, 90, "the synthetic job is known")
