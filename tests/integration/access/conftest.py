"""One server with every way to sign in, an identity provider, and clients from two addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from tests.integration.access.teams import Team, stored_teams
from tests.support import identity_provider, postgres, running_server
from tests.support.identity_provider import IdentityProvider
from tests.support.running_server import RunningServer

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
        "HANGWATCH_CAPTURES_PER_MINUTE": "2",
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
