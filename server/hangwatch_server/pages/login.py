"""The login form. Checking the token and making the session belong to the application."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server.pages import render
from hangwatch_server.pages.boundary import PageRoute

router = APIRouter(route_class=PageRoute)


@router.get("/login")
async def login(
    request: Request,
    next_page: Annotated[str, Query(alias="next", max_length=2000)] = "/",
) -> Response:
    return login_page(request, next_page)


def login_page(request: Request, next_page: str, error: str = "", status: int = 0) -> Response:
    """The form; with `error` it says why the last try failed."""
    values = {
        "title": "Sign in · Hangwatch",
        "section": "",
        "next_page": next_page if is_local(next_page) else "/",
        "error": error,
    }
    return render.page(request, "login", values, status or (401 if error else 200))


def is_local(address: str) -> bool:
    """Whether an address stays on this server: `//host` and `/\\host` lead elsewhere."""
    return address.startswith("/") and address[1:2] not in ("/", "\\")
