"""All routers of the API put together."""

from __future__ import annotations

from fastapi import APIRouter

from hangwatch_server.api import (
    actions,
    agents,
    audit,
    captures,
    channels,
    deliveries,
    diagnose,
    events,
    groups,
    health,
    incidents,
    jobs,
    login,
    nodes,
    openapi,
    ranks,
    sessions,
    settings,
    silences,
    tokens,
    verdicts,
)

PREFIX = "/api/v1"


def router() -> APIRouter:
    everything = APIRouter()
    for module in (
        jobs,
        verdicts,
        ranks,
        groups,
        captures,
        diagnose,
        incidents,
        actions,
        nodes,
        deliveries,
        silences,
        channels,
        agents,
        tokens,
        sessions,
        audit,
        settings,
        events,
    ):
        everything.include_router(module.router, prefix=PREFIX, responses=openapi.ERRORS)
    for module in (health, login):
        everything.include_router(module.router, responses=openapi.NOT_UNDERSTOOD)
    return everything
