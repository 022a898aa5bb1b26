"""Where people sign in. Checking a token and making the session belong to the application."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server.pages import login_form, proxied
from hangwatch_server.pages.boundary import PageRoute

router = APIRouter(route_class=PageRoute)


@router.get("/login")
async def login(
    request: Request,
    next_page: Annotated[str, Query(alias="next", max_length=2000)] = "/",
    over: Annotated[bool, Query(description="Just signed out: nobody is signed in anew.")] = False,
) -> Response:
    answer = None if over else await proxied.signed_in(request, next_page)
    return answer or login_form.login_page(request, next_page, is_over=over)
