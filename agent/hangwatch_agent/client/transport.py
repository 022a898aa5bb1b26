"""One HTTP call at a time to one server: address, token, trust, timeouts, retries, and its errors
in words. It knows no call of the API by name.
"""

from __future__ import annotations

import http.client
import random
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from hangwatch_agent.client.answers import Problem
from hangwatch_agent.errors import AgentError

PREFIX = "/api/v1"
TIMEOUT_S = 15.0
MAX_ANSWER_BYTES = 256 * 1024 * 1024
# Long enough for a server that is being restarted behind a balancer, short for whoever waits.
PAUSES_S = (0.3, 1.0)
LONGEST_PAUSE_S = 10.0  # that a server may ask for
_PASSING = (429, 502, 503, 504)
_SCHEMES = {"ws": "http", "wss": "https"}
_random = random.SystemRandom()  # the jitter of a thousand nodes must not be seeded alike


class ClientError(AgentError, OSError):
    """The server did not do what was asked; `status` is None when it did not even answer.

    An OSError as urllib's own errors are, for callers that know no more than that a call failed.
    """

    def __init__(
        self, text: str, status: int | None = None, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def is_passing(self) -> bool:
        """Whether the same call may succeed a little later."""
        return self.status in _PASSING or isinstance(self, UnreachableError)


class UnreachableError(ClientError):
    """The connection was refused, reset or cut off, or nothing came in time."""

    def __init__(self, text: str, *, is_cut_off: bool) -> None:
        super().__init__(text)
        self.is_cut_off = is_cut_off  # known at once: asking again costs nobody time


class Transport:
    """Calls one server with one token; `sleep` takes seconds."""

    def __init__(
        self,
        server: str,
        token: str,
        ca_file: Path | None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.server = _base(server)
        self._token = _checked(token.strip())
        self._sleep = sleep
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=_trust(ca_file)),
            urllib.request.ProxyHandler({} if _is_local(self.server) else None),
            _NoRedirects(),
        )

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        is_repeatable: bool = False,
    ) -> bytes:
        """The body of the answer. What does the same when it is done twice is tried again.

        Raises ClientError, UnreachableError where no answer came.
        """
        request = self._request(method, path, body, headers or {})
        for pause_s in PAUSES_S if is_repeatable else ():
            try:
                return self._once(request, timeout_s)
            except ClientError as error:
                wait_s = _pause_s(error, pause_s)
                if wait_s is None:
                    raise
            self._sleep(wait_s)
        return self._once(request, timeout_s)

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> urllib.request.Request:
        request = urllib.request.Request(self.server + PREFIX + path, data=body, method=method)
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        for name, value in headers.items():
            request.add_header(name, value)
        return request

    def _once(self, request: urllib.request.Request, timeout_s: float) -> bytes:
        try:
            with self._opener.open(request, timeout=timeout_s) as response:
                answer: bytes = response.read(MAX_ANSWER_BYTES)
                return answer
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error, timeout_s) from error

    def _refusal(self, error: urllib.error.HTTPError) -> ClientError:
        """The server's own words, where it is ours."""
        if 300 <= error.code < 400:
            target = error.headers.get("location", "elsewhere")
            return ClientError(
                f"{self.server} leads to {target}, and the token goes nowhere by itself: give the "
                "server's own address with --server or HANGWATCH_SERVER",
                error.code,
            )
        try:
            problem = msgspec.json.decode(error.read(1_000_000), type=Problem)
        except (msgspec.DecodeError, OSError):
            problem = Problem()
        text = problem.detail or (
            f"{self.server} answered {error.code} {error.reason}: is it a Hangwatch server?"
        )
        after = str(error.headers.get("retry-after", ""))
        retry_after_s = float(after) if after.isdecimal() else None
        return ClientError(text, error.code, retry_after_s=retry_after_s)

    def _unreachable(self, error: Exception, timeout_s: float) -> ClientError:
        cause = getattr(error, "reason", error)
        if isinstance(cause, TimeoutError):
            words = f"no answer within {timeout_s:.0f} s"
        elif isinstance(cause, ConnectionRefusedError):
            words = "nothing listens there"
        elif isinstance(cause, socket.gaierror):
            words = "the host name is not known"
        elif isinstance(cause, ssl.SSLCertVerificationError):
            words = f"its certificate is not trusted ({cause.verify_message}); give --ca-file"
        else:
            words = str(cause) or type(cause).__name__
        text = (
            f"no server at {self.server}: {words}; start one with `hangwatch serve`, or name the "
            "right one with --server or HANGWATCH_SERVER"
        )
        if isinstance(cause, socket.gaierror | ssl.SSLError):
            return ClientError(text)
        is_cut_off = isinstance(cause, ConnectionError | http.client.HTTPException)
        return UnreachableError(text, is_cut_off=is_cut_off)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would send the token on to whatever host a redirect names."""

    def redirect_request(self, *_: object) -> None:
        return None


def _pause_s(error: ClientError, pause_s: float) -> float | None:
    """How long to wait before the same call again; None where that is of no use."""
    if isinstance(error, UnreachableError):
        return pause_s * _random.uniform(0.5, 1.5) if error.is_cut_off else None
    if error.status not in _PASSING:
        return None
    asked_s = error.retry_after_s if error.retry_after_s is not None else pause_s
    return None if asked_s > LONGEST_PAUSE_S else asked_s * _random.uniform(1.0, 1.5)


def _trust(ca_file: Path | None) -> ssl.SSLContext | None:
    """Only these certificates are trusted; None stands for the system's own."""
    try:
        return ssl.create_default_context(cafile=str(ca_file)) if ca_file else None
    except OSError as error:
        raise ClientError(
            f"certificates cannot be read from {ca_file}: {error.strerror or error}; give a PEM "
            "file with --ca-file or HANGWATCH_CA_FILE"
        ) from error


def _is_local(server: str) -> bool:
    """Whether a proxy of the site would look for the server on the wrong machine."""
    return urllib.parse.urlsplit(server).hostname in ("localhost", "127.0.0.1", "::1")


def _checked(token: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise ClientError(
            "the token holds a character that no token has: copy it again, as `hangwatch token "
            "create` printed it, to HANGWATCH_TOKEN"
        )
    return token


def _base(server: str) -> str:
    """The http(s) address without a path's end; agents' ws(s) addresses do as well."""
    try:
        parts = urllib.parse.urlsplit(server if "://" in server else f"http://{server}")
        scheme = _SCHEMES.get(parts.scheme, parts.scheme)
        has_host = bool(parts.hostname) and parts.port != 0  # port raises on what is no number
    except ValueError:
        has_host = False
    if not has_host or scheme not in ("http", "https") or " " in parts.netloc:
        raise ClientError(
            f"'{server}' is no server address: write it as http://HOST:PORT in --server or "
            "HANGWATCH_SERVER"
        )
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"
