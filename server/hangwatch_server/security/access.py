"""Who is calling: bearer token, browser session or, on loopback when asked for, anonymous reader.

`require(scope)` makes the dependency that a route declares. Every unsafe request that rests on a
cookie must also prove that it comes from our own page.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from hangwatch_server import logs
from hangwatch_server.db.sessions import Session, SessionKind
from hangwatch_server.db.tokens import Token
from hangwatch_server.errors import HangwatchError
from hangwatch_server.security import bound, forms, sessions
from hangwatch_server.security.authenticator import Authenticator
from hangwatch_server.security.guard import Guard
from hangwatch_server.security.scopes import SCOPE_OF, Scope, granted, role_of

CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf_token"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token with the scope that the call needs."
)
_log = logs.get()


class UnauthorisedError(HangwatchError):
    """No token, or one that is not known."""


class ForbiddenError(HangwatchError):
    """A good token that may not do this, or a request from a foreign page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes this request, and what they may do."""

    name: str
    scopes: frozenset[Scope]
    id: str = ""  # of the token or the person, whom limits count by
    node: str | None = None
    jobs: str = ""  # pattern of the names of the jobs that they may see, "" for all
    csrf_token: str = ""  # for forms and scripts of a browser session, "" otherwise
    session: str = ""  # id of the browser session, "" without one
    is_anonymous: bool = False

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    @property
    def role(self) -> str:
        return role_of(sorted(self.scopes))


ANONYMOUS = Caller(
    name="anonymous", id="anonymous", scopes=frozenset({Scope.READ}), is_anonymous=True
)


def require(scope: str) -> Callable[..., Awaitable[Caller]]:
    """Make the dependency that lets a request in with this scope: `Depends(require("read"))`."""
    needed = Scope(scope)

    async def caller_with_scope(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> Caller:
        caller = await _caller(request, credentials)
        if not caller.may(needed):
            raise _forbidden(request, caller, _refusal(caller, needed))
        if caller.jobs and not await bound.may_reach(request, caller.jobs):
            raise _forbidden(request, caller, _bound_refusal(caller))
        request.state.caller = caller
        return caller

    return caller_with_scope


def csrf_token(request: Request) -> str:
    """What a page puts in its forms as `csrf_token`; "" where no session is in play."""
    caller = getattr(request.state, "caller", None)
    return caller.csrf_token if isinstance(caller, Caller) else ""


def jobs_of(request: Request) -> str:
    """The pattern of the jobs that the caller of this request may see, "" for all."""
    caller = getattr(request.state, "caller", None)
    return caller.jobs if isinstance(caller, Caller) else ""


def address_of(request: Request) -> str:
    """Where the request comes from, as far as trusted proxies say."""
    return request.client.host if request.client else ""


async def _caller(request: Request, credentials: HTTPAuthorizationCredentials | None) -> Caller:
    if credentials is not None:
        return await _by_token(request, credentials.credentials)
    if "authorization" in request.headers:
        raise UnauthorisedError("the Authorization header must read `Bearer hw_…`")
    cookie = sessions.cookie_of(request)
    if cookie and (caller := await _by_session(request, cookie)) is not None:
        return caller
    if _is_anonymous_reader(request):
        if request.method not in _SAFE_METHODS and not sessions.is_same_origin(request):
            raise _forbidden(
                request, ANONYMOUS, "the request was sent by another site: open the page here"
            )
        return ANONYMOUS
    raise UnauthorisedError(
        "this call needs a token: send `Authorization: Bearer hw_…`, or set HANGWATCH_TOKEN; an "
        "admin makes one with `hangwatch token create --role viewer`"
    )


async def _by_token(request: Request, text: str) -> Caller:
    token = await _authenticator(request).check(text)
    if token is None:
        address = address_of(request)
        guard_of(request).failed(address)
        _log.warning("token_refused", client=address, path=request.url.path)
        raise UnauthorisedError(
            "the token is not known, revoked or expired: make another with `hangwatch token create`"
        )
    return _of_token(token)


def _of_token(token: Token, csrf: str = "", session: str = "") -> Caller:
    return Caller(
        name=token.name,
        id=f"token:{token.id}",
        scopes=granted(token.scopes),
        node=token.node,
        jobs=token.jobs,
        csrf_token=csrf,
        session=session,
    )


async def _by_session(request: Request, cookie: str) -> Caller | None:
    keeper: sessions.Sessions = request.app.state.sessions
    session = await keeper.find(cookie)
    caller = await _of_session(request, session, cookie) if session else None
    if caller is not None and request.method not in _SAFE_METHODS:
        await _refuse_forgery(request, caller, cookie)
    return caller


async def _of_session(request: Request, session: Session, cookie: str) -> Caller | None:
    csrf = sessions.csrf_text(cookie)
    if session.token is not None:
        token = await _authenticator(request).by_id(session.token)
        return None if token is None else _of_token(token, csrf, session.id)
    if session.kind is SessionKind.PROXY and not _proxy_still_says(request, session):
        return None
    return Caller(
        name=session.who,
        id=f"person:{session.who}",
        scopes=granted(session.scopes),
        csrf_token=csrf,
        session=session.id,
    )


def _proxy_still_says(request: Request, session: Session) -> bool:
    """Who signed out at the proxy, or reaches us past it, has no session here either."""
    header = request.app.state.settings.proxy_user_header
    is_by_proxy = getattr(request.state, "is_by_proxy", False)
    return bool(is_by_proxy and header) and session.who == f"proxy:{request.headers.get(header)}"


async def _refuse_forgery(request: Request, caller: Caller, cookie: str) -> None:
    text = request.headers.get(CSRF_HEADER, "")
    is_ours = sessions.is_same_origin(request)
    if is_ours and not text and "form" in request.headers.get("content-type", ""):
        text = str((await forms.read(request, caller)).get(CSRF_FIELD, ""))
    if not is_ours or not sessions.is_csrf_text(cookie, text):
        raise _forbidden(
            request,
            caller,
            "the request does not come from a page of this server, or its page is too old: reload "
            "the page and try again",
        )


def _is_anonymous_reader(request: Request) -> bool:
    """Only from this machine, and only by a local name.

    A foreign name that resolves to 127.0.0.1 (DNS rebinding) would let any web page read us, and a
    proxy on this machine everybody whom it serves.
    """
    if not request.app.state.settings.allow_anonymous or request.client is None:
        return False
    if getattr(request.state, "was_forwarded", False):
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


def _forbidden(request: Request, caller: Caller, why: str) -> ForbiddenError:
    _log.warning(
        "request_forbidden",
        who=caller.name,
        client=address_of(request),
        method=request.method,
        path=request.url.path,
        why=why,
    )
    return ForbiddenError(why)


def _refusal(caller: Caller, needed: Scope) -> str:
    has = ", ".join(sorted(caller.scopes)) or "none"
    who = "an anonymous reader" if caller.is_anonymous else f"'{caller.name}'"
    roles = {scope: role for role, scope in SCOPE_OF.items()}
    flag = f"--role {roles[needed]}" if needed in roles else f"--scope {needed}"
    return (
        f"this call needs the scope {needed}, and {who} has {has}: use a token made with "
        f"`hangwatch token create {flag}`"
    )


def _bound_refusal(caller: Caller) -> str:
    return (
        f"'{caller.name}' may see the jobs named '{caller.jobs}' and nothing that concerns all "
        "jobs: use a token that was made without --jobs"
    )


def guard_of(request: Request) -> Guard:
    guard: Guard = request.app.state.services.guard
    return guard


def _authenticator(request: Request) -> Authenticator:
    authenticator: Authenticator = request.app.state.services.tokens
    return authenticator
