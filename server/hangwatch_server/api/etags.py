"""ETag and 304 for every complete JSON or text answer to a GET of the API, by a hash of its body.

The answer is still computed; what is saved is the transfer, and the client's own work. It is for
clients that keep what they were told: browsers and proxies are told to keep nothing. Streams and
files pass through: static files bring their own ETag.
"""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/api/"
_TYPES = ("application/json", "text/plain")
_NOT_FOR_304 = ("content-length", "content-type")


class ETags:
    """Buffers what is worth hashing; a body of 16,384 ranks is about 5 MB."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not _is_api(scope["path"]):
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("if-none-match", "")
        await self._app(scope, receive, _Hashed(send, given).send)


class _Hashed:
    def __init__(self, send: Send, given: str) -> None:
        self._send = send
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
        await self._send({"type": "http.response.body", "body": body})


def _is_api(path: str) -> bool:
    return path.startswith(PREFIX) or path == "/openapi.json"


def _is_worth_hashing(message: Message) -> bool:
    kind = Headers(raw=message["headers"]).get("content-type", "")
    return message["status"] == 200 and kind.startswith(_TYPES)
