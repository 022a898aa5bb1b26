"""Browser sessions: one form trades a token for a cookie, another ends it. Pages draw the forms."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from hangwatch_server import logs, security, wiring
from hangwatch_server.api import openapi
from hangwatch_server.db import audit
from hangwatch_server.db.sessions import SessionKind
from hangwatch_server.errors import TooManyError
from hangwatch_server.pages import sign_in
from hangwatch_server.pages.login_form import login_page
from hangwatch_server.security import Scope, secret_text, sessions

PEOPLE = frozenset({Scope.READ})
router = APIRouter(tags=["sessions"])
_log = logs.get()


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
        429: {
            "description": "The login page, after too many wrong tokens from one address.",
            "content": {"text/html": {"schema": {"type": "string"}}},
        },
    },
)
async def login(
    request: Request,
    house: wiring.House,
    token: Annotated[str, Form(min_length=1, max_length=secret_text.MAX_CHARS, examples=["hw_…"])],
    next: Annotated[
        str, Form(max_length=2000, description="Where to go then: a path of this server.")
    ] = "/",
) -> Response:
    if not sessions.is_same_origin(request):
        raise security.ForbiddenError("the login form was sent by another site: open /login here")
    target = sign_in.target_of(next)
    found = await house.tokens.check(token.strip())
    if found is None:
        try:
            security.guard_of(request).failed(security.address_of(request))
        except TooManyError as error:
            return login_page(request, target, sign_in.sentence(str(error)), 429)
        _log.warning("login_failed", client=security.address_of(request))
        return login_page(request, target, "The token is not known, revoked or expired.")
    if not security.granted(found.scopes) & PEOPLE:
        return login_page(request, target, "This is a machine's token: it shows no pages.")
    return await sign_in.begin(request, target, SessionKind.TOKEN, found.name, token=found)


@router.post(
    "/logout",
    status_code=303,
    response_class=RedirectResponse,
    summary="End the session",
    responses={303: {"description": "To the login page."}, **openapi.needs_token()},
)
@security.for_bound_callers
async def logout(request: Request, house: wiring.House, caller: wiring.Reader) -> RedirectResponse:
    keeper: security.Sessions = request.app.state.sessions
    if caller.session and await keeper.end(caller.session):
        await audit.record(house.db, caller.name, "logout", f"session:{caller.session}", "")
    response = RedirectResponse("/login?over=true", 303)
    sessions.delete_cookie(request, response)
    return response
