"""ETag and 304 for every complete JSON or text answer to a GET of the API, by a hash of its body;
and HEAD, which is a GET whose body stays here.

The answer is still computed; what is saved is the transfer, and the client's own work. It is for
clients that keep what they were told: browsers and proxies are told to keep nothing. Streams and
files pass through: static files bring their own ETag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/api/"
EVENTS = "/api/v1/events"  # a stream, of which there is no head
_TYPES = ("application/json", "text/plain")
_NOT_FOR_304 = ("content-length", "content-type")


class ETags:
    """Buffers what is worth hashing; a body of 16,384 ranks is about 5 MB."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_read(scope):
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("if-none-match", "")
        is_head = scope["method"] == "HEAD"
        # The scope itself where it can be: the layers outside read from it which route it was.
        asked = {**scope, "method": "GET"} if is_head else scope
        await self._app(asked, receive, _Hashed(send, given, is_head=is_head).send)


class _Hashed:
    def __init__(self, send: Send, given: str, *, is_head: bool) -> None:
        self._send = send
        self._is_head = is_head
        self._given = {text.strip().removeprefix("W/") for text in given.split(",")}
        self._start: Message | None = None
        self._body: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_worth_hashing(message):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._finish(self._start)
        else:
            await self._send(message)

    async def _finish(self, start: Message) -> None:
        body = b"".join(self._body)
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = MutableHeaders(scope=start)
        headers["etag"] = etag
        headers.setdefault("cache-control", "no-store")
        if etag in self._given or "*" in self._given:
            body = b""
            start["status"] = 304
            for name in _NOT_FOR_304:
                del headers[name]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": b"" if self._is_head else body})


def has_etag(path: str, media_types: Iterable[str]) -> bool:
    """Whether a complete answer to a GET of this path has an ETag, by its media types."""
    return _is_api(path) and any(one.startswith(_TYPES) for one in media_types)


def _is_read(scope: Scope) -> bool:
    is_endless = scope["path"] == EVENTS and scope["method"] == "HEAD"
    return scope["method"] in ("GET", "HEAD") and _is_api(scope["path"]) and not is_endless


def _is_api(path: str) -> bool:
    return path.startswith(PREFIX) or path == "/openapi.json"


def _is_worth_hashing(message: Message) -> bool:
    kind = Headers(raw=message["headers"]).get("content-type", "")
    return message["status"] == 200 and kind.startswith(_TYPES)
