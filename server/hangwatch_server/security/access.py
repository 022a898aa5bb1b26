"""Who is calling: bearer token, browser session or, on loopback when asked for, anonymous reader.

`require(scope)` makes the dependency that a route declares. Every unsafe request that rests on a
cookie must also prove that it comes from our own page.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from hangwatch_server.errors import HangwatchError
from hangwatch_server.security import sessions
from hangwatch_server.security.authenticator import Authenticator
from hangwatch_server.security.scopes import Scope, granted

CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf_token"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token with the scope that the call needs."
)


class UnauthorisedError(HangwatchError):
    """No token, or one that is not known."""


class ForbiddenError(HangwatchError):
    """A good token that may not do this, or a request from a foreign page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes this request, and what they may do."""

    name: str
    scopes: frozenset[Scope]
    node: str | None = None
    csrf_token: str = ""  # for forms and scripts of a browser session, "" otherwise
    is_anonymous: bool = False

    def may(self, scope: str) -> bool:
        return scope in self.scopes


ANONYMOUS = Caller(name="anonymous", scopes=frozenset({Scope.READ}), is_anonymous=True)


def require(scope: str) -> Callable[..., Awaitable[Caller]]:
    """Make the dependency that lets a request in with this scope: `Depends(require("read"))`."""
    needed = Scope(scope)

    async def caller_with_scope(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> Caller:
        caller = await _caller(request, credentials)
        if not caller.may(needed):
            raise ForbiddenError(_refusal(caller, needed))
        request.state.caller = caller
        return caller

    return caller_with_scope


def csrf_token(request: Request) -> str:
    """What a page puts in its forms as `csrf_token`; "" where no session is in play."""
    caller = getattr(request.state, "caller", None)
    return caller.csrf_token if isinstance(caller, Caller) else ""


async def _caller(request: Request, credentials: HTTPAuthorizationCredentials | None) -> Caller:
    if credentials is not None:
        return await _by_token(request, credentials.credentials)
    if "authorization" in request.headers:
        raise UnauthorisedError("the Authorization header must read `Bearer hw_…`")
    cookie = request.cookies.get(sessions.COOKIE)
    if cookie and (caller := await _by_session(request, cookie)) is not None:
        return caller
    if _is_anonymous_reader(request):
        if request.method not in _SAFE_METHODS and not sessions.is_same_origin(request):
            raise ForbiddenError("the request was sent by another site: open the page here")
        return ANONYMOUS
    raise UnauthorisedError(
        "this call needs a token: send `Authorization: Bearer hw_…`, or set HANGWATCH_TOKEN; an "
        "admin makes one with `hangwatch token create --scope read`"
    )


async def _by_token(request: Request, text: str) -> Caller:
    token = await _authenticator(request).check(text)
    if token is None:
        raise UnauthorisedError(
            "the token is not known, revoked or expired: make another with `hangwatch token create`"
        )
    return Caller(name=token.name, scopes=granted(token.scopes), node=token.node)


async def _by_session(request: Request, cookie: str) -> Caller | None:
    signer: sessions.Sessions = request.app.state.sessions
    session = signer.read(cookie, time.time())
    token = await _authenticator(request).check_hash(session.secret_hash) if session else None
    if session is None or token is None:
        return None
    if request.method not in _SAFE_METHODS:
        await _refuse_forgery(request, signer, session)
    return Caller(
        name=token.name,
        scopes=granted(token.scopes),
        node=token.node,
        csrf_token=signer.csrf_text(session),
    )


async def _refuse_forgery(
    request: Request, signer: sessions.Sessions, session: sessions.Session
) -> None:
    text = request.headers.get(CSRF_HEADER, "")
    if not text and "form" in request.headers.get("content-type", ""):
        text = str((await request.form()).get(CSRF_FIELD, ""))
    if not sessions.is_same_origin(request) or not signer.is_csrf_text(session, text):
        raise ForbiddenError(
            "the request does not come from a page of this server, or its page is too old: reload "
            "the page and try again"
        )


def _is_anonymous_reader(request: Request) -> bool:
    """Only from this machine, and only by a local name.

    A foreign name that resolves to 127.0.0.1 (DNS rebinding) would let any web page read us.
    """
    if not request.app.state.settings.allow_anonymous or request.client is None:
        return False
    host = request.headers.get("host", "").lower()
    name = host if host.endswith("]") else host.rsplit(":", 1)[0]
    return is_loopback(request.client.host) and name in _LOCAL_NAMES


def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refusal(caller: Caller, needed: Scope) -> str:
    has = ", ".join(sorted(caller.scopes)) or "none"
    who = "an anonymous reader" if caller.is_anonymous else f"token '{caller.name}'"
    return (
        f"this call needs the scope {needed}, and {who} has {has}: use a token made with "
        f"`hangwatch token create --scope {needed}`"
    )


def _authenticator(request: Request) -> Authenticator:
    authenticator: Authenticator = request.app.state.services.tokens
    return authenticator
