"""All routers of the API put together."""

from __future__ import annotations

from fastapi import APIRouter

from hangwatch_server.api import (
    agents,
    audit,
    captures,
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
        nodes,
        agents,
        tokens,
        sessions,
        audit,
        settings,
        events,
    ):
        everything.include_router(module.router, prefix=PREFIX, responses=openapi.ERRORS)
    everything.include_router(health.router)
    everything.include_router(login.router)
    return everything
