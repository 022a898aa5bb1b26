"""The web application put together: API, pages, agents' socket, errors, headers, and its life.

`create_app` wires; what runs while the application lives is opened by `lifespan`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

import hangwatch_server
from hangwatch_server import lifespan, pages, security
from hangwatch_server.actions import command
from hangwatch_server.api import envelope, etags, openapi, problems, routes
from hangwatch_server.errors import HangwatchError
from hangwatch_server.ingest import socket as agents
from hangwatch_server.security import access, peers, roles
from hangwatch_server.services import Services
from hangwatch_server.settings import ServerSettings

if TYPE_CHECKING:
    from hangwatch_server.security.oidc import Provider  # its packages are an extra

DESCRIPTION = (
    "Finds the rank that holds up a distributed PyTorch job, and says what it is doing. Calls need "
    "a bearer token with the scope read, operate or admin; errors are RFC 9457 problem documents."
)


def create_app(settings: ServerSettings, origins: Mapping[str, str] | None = None) -> FastAPI:
    """The application for these settings; raise HangwatchError where they are not safe.

    `origins` names where each setting that is not a default came from, for administrators to see.
    """
    check_exposure(settings)
    check_periods(settings)
    check_sign_in(settings)
    command.words(settings.action_command)  # one that cannot run is said at the start
    app = FastAPI(
        title="Hangwatch",
        version=hangwatch_server.__version__,
        description=DESCRIPTION,
        lifespan=_life,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,  # both viewers load scripts from a CDN
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.origins = origins or {}
    app.state.oidc = identity_provider(settings)
    api = routes.router()
    app.include_router(api)
    app.include_router(agents.router)
    pages.install(app)
    problems.install(app)
    openapi.install(app, api)
    app.add_middleware(etags.ETags)
    app.add_middleware(envelope.Envelope)
    identity = (settings.proxy_user_header, settings.proxy_groups_header)
    proxies = peers.parse(settings.trusted_proxies)
    app.add_middleware(peers.Peers, proxies=proxies, identity=identity)  # added last: wraps all
    return app


def check_exposure(settings: ServerSettings) -> None:
    """Refuse to let anybody on a network read without a token."""
    if settings.allow_anonymous and not access.is_loopback(settings.host):
        raise HangwatchError(
            f"--allow-anonymous is only for loopback, and {settings.host} is reached from other "
            "machines: use --host 127.0.0.1, or leave --allow-anonymous out and use tokens"
        )


_PERIODS = (
    "tick_s",
    "interval_s",
    "lease_ttl_s",
    "alert_tick_s",
    "alert_claim_s",
    "heartbeat_interval_s",
)


def check_periods(settings: ServerSettings) -> None:
    """Refuse periods of no length: what repeats would never rest."""
    for name in _PERIODS:
        if getattr(settings, name) <= 0:
            flag = name.replace("_", "-")
            raise HangwatchError(f"--{flag} must be longer than 0 s: leave it out for the default")


def check_sign_in(settings: ServerSettings) -> None:
    """Refuse settings under which nobody could sign in, or anybody could as anybody."""
    rules = roles.parse(settings.roles)
    if settings.proxy_user_header and not peers.parse(settings.trusted_proxies):
        raise HangwatchError(
            f"--proxy-user-header believes what a proxy says in {settings.proxy_user_header}, and "
            "no proxy is trusted: name it with --trusted-proxies ADDRESS"
        )
    if (settings.proxy_user_header or settings.oidc_issuer) and not any(rules.groups.values()):
        raise HangwatchError(
            "nobody could sign in, since no group has a role: give --roles, as in "
            "'admin=sre; operator=oncall; viewer=*'"
        )
    if settings.oidc_issuer and not settings.oidc_client_id:
        raise HangwatchError("--oidc-issuer needs --oidc-client-id, which the provider gives you")


def identity_provider(settings: ServerSettings) -> Provider | None:
    """Who signs people in, if the settings name somebody."""
    if not settings.oidc_issuer:
        return None
    try:
        from hangwatch_server.security.oidc import Provider
    except ModuleNotFoundError as error:
        raise HangwatchError(
            f"--oidc-issuer needs packages that are not here ({error.name}): "
            "pip install 'hangwatch[oidc]'"
        ) from error
    return Provider(settings)


async def say_goodbye(app: FastAPI) -> None:
    """Let proxies, other servers and agents know that this one stops; all is served meanwhile."""
    services: Services = app.state.services
    await services.leaving.say_goodbye()


def begin_stop(app: FastAPI) -> None:
    """Let long polls and event streams end now, since the server only stops once they are gone."""
    app.state.stopping.set()
    app.state.services.bus.close()


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    settings: ServerSettings = app.state.settings
    app.state.stopping = asyncio.Event()
    async with lifespan.running(settings) as services:
        app.state.services = services
        app.state.sessions = security.Sessions(services.db, settings.session_hours * 3600)
        # Text of a token made just now, for whoever started the server to print; not kept else.
        app.state.new_admin_token = await services.tokens.bootstrap(settings.bootstrap_token)
        yield
