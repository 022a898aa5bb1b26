"""Puts the pages together: one router, and the static files beside it."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware

from hangwatch_server import assets
from hangwatch_server.pages import (
    administration,
    captures,
    channels,
    confirm,
    deliveries,
    incident_list,
    incident_stacks,
    incidents,
    jobs,
    login,
    nodes,
    offline,
    oidc,
    overview,
    ranks,
    silences,
    static_files,
)
from hangwatch_server.pages.static_files import KeptFiles

router = APIRouter(include_in_schema=False)
for _page in (
    overview,
    administration,
    ranks,
    jobs,
    incident_list,
    incidents,
    incident_stacks,
    captures,
    channels,
    confirm,
    deliveries,
    silences,
    nodes,
    offline,
    login,
    oidc,
):
    router.include_router(_page.router)


def install(app: FastAPI) -> None:
    """Add the pages, `/static` and `/vendor`, whose addresses hold the versions of its files."""
    web = assets.web()
    app.include_router(router)
    app.mount(static_files.address(), KeptFiles(web / "static"))
    app.mount("/static", GZipMiddleware(StaticFiles(directory=web / "static")))
    app.mount("/vendor", KeptFiles(web / "vendor"))
