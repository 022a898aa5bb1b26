"""Requests from the server to the outside: bounded in time and size, guarded, never redirected.

One for the whole server. It asks no environment for proxies and keeps no cookies.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import httpcore

from hangwatch_server.alerts.guard import Guard, NoSuchNameError
from hangwatch_server.errors import HangwatchError

TIMEOUT_S = 15.0  # Standard Webhooks suggests 15 to 30 s
MAX_ANSWER_BYTES = 256 * 1024  # Slack answers with the whole message
MAX_CONNECTIONS = 100
IDLE_S = 5.0
AGENT = "Hangwatch"


class UnreachableError(HangwatchError):
    """No answer came; the same request may succeed later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the other side said, its body cut at MAX_ANSWER_BYTES; header names in lower case."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300


class Outgoing:
    """Sends; close it when the server stops.

    `services` are those that a library with requests of its own may speak to, by their schemes.
    """

    def __init__(
        self,
        guard: Guard,
        proxy: str = "",
        *,
        services: frozenset[str] = frozenset(),
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.guard, self.services, self.proxy = guard, services, proxy
        self._timeout_s = timeout_s
        self._pool = _pool(guard, proxy)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Raise UnreachableError where no answer comes, NotAllowedError where none may be asked."""
        if self.proxy:
            self.guard.check_literal(urlsplit(url).hostname or "")
        sent = {"user-agent": AGENT, **headers, "content-length": str(len(body))}
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(url, body, sent)
        except TimeoutError as error:
            raise UnreachableError(f"no answer within {self._timeout_s:.0f} s") from error
        except NoSuchNameError as error:
            raise UnreachableError(str(error)) from error
        except _FAULTS as error:
            raise UnreachableError(_words(error)) from error

    async def close(self) -> None:
        await self._pool.aclose()

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        given = [(name.encode(), value.encode()) for name, value in headers.items()]
        async with self._pool.stream(
            "POST", url, headers=[(b"host", _host(url)), *given], content=body
        ) as response:
            text = await _beginning(response)
        return Answer(
            status=response.status,
            text=text,
            headers={
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in response.headers
            },
        )


class _Checked(httpcore.AsyncNetworkBackend):
    """Connects to addresses that the guard has just checked; TLS goes on to name the host."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface's own
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        for address in await self._guard.addresses(host, port):
            try:
                return await self._plain.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # the guard gives at least one address, or raises
        raise failure

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_FAULTS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    OSError,
)


def _pool(guard: Guard, proxy: str) -> httpcore.AsyncConnectionPool:
    trust = ssl.create_default_context()
    if not proxy:
        return httpcore.AsyncConnectionPool(
            ssl_context=trust,
            max_connections=MAX_CONNECTIONS,
            keepalive_expiry=IDLE_S,
            network_backend=_Checked(guard),
        )
    # The proxy itself is the operator's word; where names lead behind it is the proxy's to decide.
    parts = urlsplit(proxy)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return httpcore.AsyncHTTPProxy(
        proxy_url=parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(),
        proxy_auth=(user, password) if user else None,
        ssl_context=trust,
        max_connections=MAX_CONNECTIONS,
        keepalive_expiry=IDLE_S,
    )


def _host(url: str) -> bytes:
    return urlsplit(url).netloc.rpartition("@")[2].encode()


async def _beginning(response: httpcore.Response) -> str:
    """As much of the body as an error needs; the rest is not waited for."""
    parts, size = [], 0
    async for part in response.aiter_stream():
        parts.append(part)
        size += len(part)
        if size >= MAX_ANSWER_BYTES:
            break
    return b"".join(parts)[:MAX_ANSWER_BYTES].decode(errors="replace")


def _words(error: BaseException) -> str:
    """The innermost cause, which says more than `connection attempts failed`."""
    cause = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, ssl.SSLError):
        return f"no answer: {getattr(cause, 'verify_message', '') or cause.reason or 'TLS failed'}"
    number = cause.errno if isinstance(cause, OSError) else None
    told = os.strerror(number) if number and number > 0 else str(cause) or type(cause).__name__
    return f"no answer: {told}"
