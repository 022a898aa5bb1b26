"""One server with every way to sign in, an identity provider, and clients from two addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import httpx
import pytest
from tests.integration.access.teams import Team, stored_teams
from tests.support import identity_provider, postgres, running_server, synthetic_agent, waiting
from tests.support.identity_provider import IdentityProvider
from tests.support.running_server import RunningServer
from tests.support.synthetic_agent import SyntheticAgent

from hangwatch_agent import wire

GOOD = wire.Launch(key="launch of good will", name="gpt-good")
PROXY = "127.0.0.2"  # the one address that the server takes for a proxy


@pytest.fixture(scope="session")
def _provider() -> Iterator[IdentityProvider]:
    with identity_provider.running() as provider:
        yield provider


@pytest.fixture
def provider(_provider: IdentityProvider) -> IdentityProvider:
    _provider.reset()
    return _provider


@pytest.fixture(scope="session")
def database(migrated: str) -> Iterator[str]:
    """URL of the server's own database, for what no call can put there."""
    with postgres.fresh_database(migrated, postgres.TEMPLATE) as url:
        yield url


@pytest.fixture(scope="session")
def server(database: str, _provider: IdentityProvider) -> Iterator[RunningServer]:
    settings = {
        "HANGWATCH_OIDC_ISSUER": _provider.url,
        "HANGWATCH_OIDC_CLIENT_ID": identity_provider.CLIENT_ID,
        "HANGWATCH_OIDC_CLIENT_SECRET": identity_provider.CLIENT_SECRET,
        "HANGWATCH_ROLES": "admin=sre; operator=oncall; viewer=readers",
        "HANGWATCH_TRUSTED_PROXIES": PROXY,
        "HANGWATCH_PROXY_USER_HEADER": "X-Forwarded-User",
        "HANGWATCH_PROXY_GROUPS_HEADER": "X-Forwarded-Groups",
        "HANGWATCH_FAILURES_PER_MINUTE": "5",
        "HANGWATCH_CAPTURES_PER_MINUTE": "10",
    }
    with (
        postgres.data_folder() as folder,
        running_server.running(database, folder, settings) as found,
    ):
        yield found


@pytest.fixture(scope="session")
def teams(server: RunningServer, database: str) -> dict[str, Team]:
    """The leavings of two jobs that are over: of `llm-7b`, and of `zebra-vision`."""
    return asyncio.run(stored_teams(database))


@pytest.fixture(scope="session")
def good_agent(server: RunningServer) -> Iterator[SyntheticAgent]:
    """An agent of good will, which no attack may disturb; its job is `gpt-good` on node-good."""
    token = server.new_token("agent", "node-good")
    with synthetic_agent.beating(server.url, token, "node-good", GOOD) as agent:
        yield agent


@pytest.fixture
def unharmed(server: RunningServer, good_agent: SyntheticAgent) -> Callable[[], None]:
    """Asserts that the good agent is live and heard, and that people are answered."""

    def check() -> None:
        with server.client() as client:

            def is_heard() -> bool:
                job = client.get(f"/api/v1/jobs/by-name/{GOOD.name}")
                node = client.get("/api/v1/nodes/node-good")
                return (
                    job.status_code == node.status_code == 200
                    and job.json()["state"] == "healthy"
                    and job.json()["reporting"] == 2
                    and job.json()["nodes"] == ["node-good"]
                    and node.json()["link"] == "live"
                )

            before = good_agent.number
            waiting.until(
                lambda: is_heard() and good_agent.number > before, 60, "the good agent is heard"
            )

    return check


@pytest.fixture
def admin(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def client_from(
    server: RunningServer, address: str = "", headers: dict[str, str] | None = None
) -> httpx.Client:
    """A browser's client, at an address of this machine of its own."""
    transport = httpx.HTTPTransport(local_address=address or None)
    return httpx.Client(
        base_url=server.url,
        transport=transport,
        headers={"accept": "text/html", **(headers or {})},
        timeout=60,
    )


@pytest.fixture
def browser(server: RunningServer) -> Iterator[httpx.Client]:
    with client_from(server) as client:
        yield client
