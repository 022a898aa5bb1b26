"""The two steps of signing in by an identity provider: to it, and back with a code."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from hangwatch_server import logs, security
from hangwatch_server.db.sessions import SessionKind
from hangwatch_server.errors import HangwatchError, NotFoundError
from hangwatch_server.pages import sign_in
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.pages.login_form import login_page
from hangwatch_server.security import SCOPE_OF

if TYPE_CHECKING:
    from hangwatch_server.security.oidc import Provider  # its packages are an extra

COOKIE = "hangwatch_sign_in"
LIFETIME_S = 600
BACK = "/login/oidc/back"
MAX_COOKIE = 4000
router = APIRouter(route_class=PageRoute)
_log = logs.get()


@router.get("/login/oidc")
async def begin(
    request: Request, next_page: Annotated[str, Query(alias="next", max_length=2000)] = "/"
) -> Response:
    provider, secret = _provider(request), secrets.token_urlsafe(32)
    target = sign_in.target_of(next_page)
    try:
        address = await provider.address(secret, _back_to(request))
    except HangwatchError as error:
        return _refused(request, str(error), 502)
    response = RedirectResponse(address, 303)
    held = base64.urlsafe_b64encode(target.encode()).decode()
    response.set_cookie(
        _cookie_name(request),
        f"{secret}.{held}",
        max_age=LIFETIME_S,
        path="/",
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


@router.get(BACK)
async def back(
    request: Request,
    code: Annotated[str, Query(max_length=4000)] = "",
    state: Annotated[str, Query(max_length=200)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """One code is exchanged once; the cookie that began the sign-in ends here, however it ends."""
    secret, _, held = request.cookies.get(_cookie_name(request), "")[:MAX_COOKIE].partition(".")
    response = await _signed_in(request, secret, held, code, state, error)
    is_secure = request.url.scheme == "https"
    response.delete_cookie(
        _cookie_name(request), path="/", httponly=True, samesite="lax", secure=is_secure
    )
    return response


async def _signed_in(
    request: Request, secret: str, held: str, code: str, state: str, error: str
) -> Response:
    provider = _provider(request)
    if error or not code:
        return _refused(request, f"{provider.name} did not sign you in: {error or 'no code'}", 401)
    if not secret:
        return _refused(request, "this sign-in was begun in another browser, or too long ago", 401)
    try:
        person = await provider.person(secret, _back_to(request), code, state)
    except HangwatchError as problem:
        return _refused(request, str(problem), 401)
    if person.role is None:
        return _refused(
            request,
            f"'{person.name}' is in no group that may use Hangwatch: an administrator gives groups "
            "their roles with --roles",
            403,
        )
    return await sign_in.begin(
        request,
        sign_in.target_of(_decoded(held)),
        SessionKind.OIDC,
        person.name,
        scopes=(SCOPE_OF[person.role].value,),
    )


def _refused(request: Request, why: str, status: int) -> Response:
    _log.warning("sign_in_refused", client=security.address_of(request), why=why)
    return login_page(request, "/", sign_in.sentence(why), status)


def _provider(request: Request) -> Provider:
    provider: Provider | None = getattr(request.app.state, "oidc", None)
    if provider is None:
        raise NotFoundError("No identity provider is set: sign in with a token.")
    return provider


def _back_to(request: Request) -> str:
    """The address that the provider knows this server by."""
    base = request.app.state.settings.public_url or str(request.base_url)
    return f"{base.rstrip('/')}{BACK}"


def _cookie_name(request: Request) -> str:
    return f"__Host-{COOKIE}" if request.url.scheme == "https" else COOKIE


def _decoded(held: str) -> str:
    try:
        return base64.urlsafe_b64decode(held.encode()).decode()
    except ValueError:
        return "/"
