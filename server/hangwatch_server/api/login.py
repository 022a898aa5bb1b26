"""Browser sessions: one form trades a token for a cookie, another ends it. Pages draw the forms."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from hangwatch_server import security
from hangwatch_server.api import deps, openapi
from hangwatch_server.pages.login import is_local, login_page
from hangwatch_server.security import secret_text, sessions

router = APIRouter(tags=["sessions"])


@router.post(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    summary="Exchange a token for a session cookie and go on to `next`",
    responses={
        303: {"description": "To `next`."},
        401: {
            "description": "The login page again, as HTML, with the reason.",
            "content": {"text/html": {"schema": {"type": "string"}}},
        },
        403: openapi.error("The form was sent by another site."),
        422: openapi.error("A part of the request cannot be read."),
    },
)
async def login(
    request: Request,
    house: deps.House,
    token: Annotated[str, Form(min_length=1, max_length=secret_text.MAX_CHARS, examples=["hw_…"])],
    next: Annotated[
        str, Form(max_length=2000, description="Where to go then: a path of this server.")
    ] = "/",
) -> Response:
    if not sessions.is_same_origin(request):
        raise security.ForbiddenError("the login form was sent by another site: open /login here")
    target = next if is_local(next) and next.isprintable() else "/"
    text = token.strip()
    if await house.tokens.check(text) is None:
        return login_page(request, target, "The token is not known, revoked or expired.")
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
    responses={303: {"description": "To the login page."}, **openapi.needs_token()},
)
async def logout() -> RedirectResponse:
    response = RedirectResponse("/login", 303)
    response.delete_cookie(sessions.COOKIE, httponly=True, samesite="lax")
    return response
