"""Browser sessions: a form posts a token and gets a cookie, another ends it. The page is elsewhere."""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse

from hangwatch_server import security
from hangwatch_server.api import deps
from hangwatch_server.security import secret_text, sessions

router = APIRouter(tags=["sessions"])


@router.post(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    summary="Exchange a token for a session cookie and go on to `next`",
    responses={303: {"description": "To `next`, or back to the login page with `error`."}},
)
async def login(
    request: Request,
    house: deps.House,
    token: Annotated[str, Form(max_length=secret_text.MAX_CHARS, examples=["hw_…"])],
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> RedirectResponse:
    if not sessions.is_same_origin(request):
        raise security.ForbiddenError("the login form was sent by another site: open /login here")
    target = _local(next)
    text = token.strip()
    if await house.tokens.check(text) is None:
        query = urlencode({"error": "token", "next": target}, quote_via=quote)
        return RedirectResponse(f"/login?{query}", 303)
    response = RedirectResponse(target, 303)
    signer: sessions.Sessions = request.app.state.sessions
    response.set_cookie(
        sessions.COOKIE,
        signer.issue(secret_text.hash_of(text), time.time()),
        max_age=sessions.LIFETIME_S,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


@router.post(
    "/logout",
    status_code=303,
    response_class=RedirectResponse,
    summary="End the session",
    dependencies=[Depends(security.require("read"))],
    responses={303: {"description": "To the login page."}},
)
async def logout() -> RedirectResponse:
    response = RedirectResponse("/login", 303)
    response.delete_cookie(sessions.COOKIE, httponly=True, samesite="lax")
    return response


def _local(target: str) -> str:
    """Only a path of this server: `//host` and `/\\host` would lead elsewhere."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if is_path and target.isprintable() else "/"
