"""The ASGI layer around every request: its id, its size limit, the security headers, and the last
error boundary.

Plain ASGI rather than Starlette's BaseHTTPMiddleware, which would buffer streams and hide
disconnects.
"""

from __future__ import annotations

import asyncio
import re
import uuid

from fastapi import HTTPException
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hangwatch_server import logs, metrics, tracing
from hangwatch_server.api import problems

_log = logs.get()
# Bodies are read before the caller is known; the largest that makes sense is a long rank range.
MAX_BODY_BYTES = 1024 * 1024
# Files that ranks left behind; who may not give any is told so before they are read.
UPLOAD_BYTES = 64 * 1024 * 1024
PUBLIC_PATHS = ("/static/", "/vendor/")
HSTS_S = 365 * 86400
BODY_IDLE_S = 20.0  # between two pieces of a body
API = "/api/v1"
UPLOAD_PATHS = frozenset({"/offline", "/api/v1/diagnose"})
_GIVEN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), usb=()",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Envelope:
    """Wraps the application; WebSockets and lifespan pass through untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        request.state.request_id = _request_id(request)
        with (
            logs.about(request=request.state.request_id),
            tracing.request(request.method, request.headers) as note,
        ):
            reply = _Reply(send, request)
            await self._answer(request, receive, reply)
            _note(note, request, reply)

    async def _answer(self, request: Request, receive: Receive, reply: _Reply) -> None:
        scope = request.scope
        try:
            refusal = _refusal(request)
            if refusal is not None:
                await refusal(scope, receive, reply.send)
                return
            await self._app(scope, _Bounded(receive, _limit(request)).receive, reply.send)
        except Exception:
            # The boundary of a request: a defect in one must not be shown raw, nor go unseen.
            _log.exception("request_failed", path=scope["path"])
            if reply.has_started:
                raise
            await problems.internal(request)(scope, receive, reply.send)
        finally:
            metrics.http_requests.labels(status=str(reply.status)).inc()


class _Bounded:
    """Passes a body on up to the limit, for bodies that do not say their size before."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit = receive, limit
        self._size_bytes = 0
        self._is_whole = False

    async def receive(self) -> Message:
        message = await self._next()
        self._size_bytes += len(message.get("body", b""))
        if self._size_bytes > self._limit:
            # FastAPI's own class: of all errors it lets only this one out of its body parser.
            raise HTTPException(413, _too_large(self._limit))
        return message

    async def _next(self) -> Message:
        """After the last piece comes only the end of the connection, which may be long."""
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout(BODY_IDLE_S):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(
                408,
                f"nothing more of the request's body came within {BODY_IDLE_S:.0f} s",
                headers={"connection": "close"},
            ) from error
        self._is_whole = not message.get("more_body", False)
        return message


class _Reply:
    """Sends on, with the headers added."""

    def __init__(self, send: Send, request: Request) -> None:
        self._send = send
        self._request_id: str = request.state.request_id
        self._is_secure = request.url.scheme == "https"
        self._is_public = request.url.path.startswith(PUBLIC_PATHS)
        self.has_started = False
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._request_id
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if self._is_secure:
                headers.setdefault("strict-transport-security", f"max-age={HSTS_S}")
            # What is told to one person is kept nowhere on the way, nor in their browser.
            headers.setdefault("cache-control", "no-cache" if self._is_public else "no-store")
        await self._send(message)


def _note(note: tracing.Note, request: Request, reply: _Reply) -> None:
    """The route and not the path: a name for each job would be no name."""
    route = getattr(request.scope.get("route"), "path", "")
    if route:
        # FastAPI gives the route as its own router knows it.
        is_api = request.url.path.startswith(API) and not route.startswith(API)
        route = API + route if is_api else route
        note("name", f"{request.method} {route}")
        note("http.route", route)
    note("http.response.status_code", reply.status)
    note("hangwatch.request_id", request.state.request_id)


def _refusal(request: Request) -> Response | None:
    """Why this request goes no further, if it does not."""
    if _has_nul(request.scope):
        detail = "the address holds a NUL character, which no name here has"
        return problems.document(request, 400, "bad-request", detail)
    size = request.headers.get("content-length", "")
    limit = _limit(request)
    if size.isdecimal() and int(size) > limit:
        return problems.document(request, 413, "too-large", _too_large(limit))
    return None


def _limit(request: Request) -> int:
    return UPLOAD_BYTES if request.url.path in UPLOAD_PATHS else MAX_BODY_BYTES


def _too_large(limit: int) -> str:
    return f"a request's body has at most {limit} bytes here"


def _request_id(request: Request) -> str:
    given = request.headers.get("x-request-id", "")
    return given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex


def _has_nul(scope: Scope) -> bool:
    """Postgres texts cannot hold NUL; refusing it here spares every query the question."""
    return "\0" in scope["path"] or b"%00" in scope["query_string"]
