"""The REST client of the command line: standard library only, timeouts everywhere, typed results.

Not for agents, which speak `wire`. An answer keeps its raw JSON beside the typed view, so that
`--json` prints exactly what the server said.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from hangwatch_agent.errors import AgentError

T = TypeVar("T")

PREFIX = "/api/v1"
TIMEOUT_S = 15.0
MAX_ANSWER_BYTES = 256 * 1024 * 1024
_SCHEMES = {"ws": "http", "wss": "https"}


class ClientError(AgentError, OSError):
    """The server did not do what was asked; `status` is None when it did not even answer.

    An OSError as urllib's own errors are, for callers that know no more than that a call failed.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    node: str
    pid: int | None
    condition: str
    where: str
    detail: str = ""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    reporting: int
    world_size: int
    silent: str


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    waits_in: str
    for_: tuple[int, ...] = msgspec.field(name="for")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    name: str
    attempt: int
    index: int
    state: str
    kind: str
    confidence: float
    stalled_s: float
    summary: str
    culprits: tuple[Culprit, ...]
    culprit_ranks: str
    waiting: str
    path: tuple[PathStep, ...]
    hints: tuple[str, ...]
    coverage: Coverage
    incident: str | None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    attempt: int
    world_size: int
    reporting: int
    state: str
    verdict: Verdict
    nodes: tuple[str, ...]
    is_live: bool
    progress_age_s: float | None = None


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Job, ...]
    next: str | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    node: str
    has_stacks: bool
    reason: str
    remedy: str


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    state: str
    ranks: str
    parts: tuple[Part, ...]


class Token(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    node: str | None
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    is_revoked: bool
    role: str = ""
    jobs: str = ""
    nodes: str = ""
    uses_left: int | None = None


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token to be made; what is left out has the server's default."""

    name: str
    scopes: tuple[str, ...]
    node: str | None = None
    expires_in: str | None = None
    jobs: str = ""
    nodes: str = ""
    uses: int | None = None
    may_replace: bool = False


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Token, ...]


class NewToken(Token, frozen=True, kw_only=True):
    token: str  # the text itself, shown this once


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    title: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What the server said, typed, and as it came."""

    value: T
    raw: bytes


class Client:
    """Calls one server with one token."""

    def __init__(self, server: str, token: str = "", ca_file: Path | None = None) -> None:
        self.server = _base(server)
        self._token = _checked(token.strip())
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=_trust(ca_file)),
            urllib.request.ProxyHandler({} if _is_local(self.server) else None),
            _NoRedirects(),
        )

    def get(self, path: str, **query: str | int | float | None) -> Any:
        """The JSON behind any path of the API, untyped, for callers with documents of their own."""
        given = {key: value for key, value in query.items() if value is not None}
        suffix = f"?{urllib.parse.urlencode(given)}" if given else ""
        return json.loads(self._call("GET", path + suffix))

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """Post JSON to any path of the API; untyped like `get`."""
        return json.loads(self._call("POST", path, json.dumps(body).encode()))

    def jobs(self, limit: int = 100) -> Answer[Jobs]:
        return self._get(f"/jobs?limit={limit}", Jobs)

    def job(self, name_or_id: str) -> Answer[Job]:
        """A job by its id, else the newest of this name."""
        if not name_or_id:
            raise ClientError("the job's name is empty: `hangwatch status` lists all jobs")
        quoted = urllib.parse.quote(name_or_id, safe="", errors="surrogateescape")
        try:
            return self._get(f"/jobs/{quoted}", Job)
        except ClientError as error:
            if error.status != 404:
                raise
        return self._get(f"/jobs/by-name/{quoted}", Job)

    def verdict(self, job_id: str) -> Answer[Verdict]:
        return self._get(f"/jobs/{urllib.parse.quote(job_id, safe='')}/verdict", Verdict)

    def request_capture(self, job_id: str, ranks: str | None, native: bool) -> Answer[Capture]:
        body = {"kinds": ["stacks"], "native": native} | ({"ranks": ranks} if ranks else {})
        return self._send("POST", f"/jobs/{job_id}/captures", Capture, body)

    def capture(self, capture_id: str, wait_s: float) -> Answer[Capture]:
        path = f"/captures/{capture_id}?wait={wait_s:.0f}s"
        return self._get(path, Capture, timeout_s=TIMEOUT_S + wait_s)

    def finished_capture(self, capture_id: str, timeout_s: float) -> Answer[Capture]:
        """The capture once it is finished, or as it is when the time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = max(1.0, deadline - time.monotonic())
            answer = self.capture(capture_id, min(left_s, 30.0))
            if answer.value.state != "taking" or time.monotonic() >= deadline:
                return answer

    def capture_text(self, capture_id: str, native: bool = False) -> str:
        suffix = "?native=true" if native else ""
        return self._call("GET", f"/captures/{capture_id}.txt{suffix}").decode()

    def capture_tree(self, capture_id: str, native: bool = False) -> bytes:
        suffix = "?native=true" if native else ""
        return self._call("GET", f"/captures/{capture_id}/tree{suffix}")

    def tokens(self) -> Answer[Tokens]:
        return self._get("/tokens", Tokens)

    def create_token(self, wanted: TokenRequest) -> Answer[NewToken]:
        return self._send("POST", "/tokens", NewToken, msgspec.to_builtins(wanted))

    def revoke_token(self, token_id: str, *, with_enrolled: bool = False) -> None:
        suffix = "?with_enrolled=true" if with_enrolled else ""
        self._call("DELETE", f"/tokens/{urllib.parse.quote(token_id, safe='')}{suffix}")

    def enrol(self, node: str) -> Answer[NewToken]:
        """Exchange the enrolment token that this client shows for the token of a node."""
        return self._send("POST", "/agent/enrol", NewToken, {"node": node})

    def _get(self, path: str, kind: type[T], timeout_s: float = TIMEOUT_S) -> Answer[T]:
        return self._typed(self._call("GET", path, timeout_s=timeout_s), kind)

    def _send(self, method: str, path: str, kind: type[T], body: object) -> Answer[T]:
        return self._typed(self._call(method, path, json.dumps(body).encode()), kind)

    def _typed(self, raw: bytes, kind: type[T]) -> Answer[T]:
        try:
            return Answer(msgspec.json.decode(raw, type=kind), raw)
        except msgspec.DecodeError as error:
            raise ClientError(
                f"{self.server} does not answer as a Hangwatch server of this version: {error}; "
                "compare `hangwatch --version` on both ends"
            ) from error

    def _call(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float = TIMEOUT_S
    ) -> bytes:
        request = urllib.request.Request(self.server + PREFIX + path, data=body, method=method)
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
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
        return ClientError(text, error.code)

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
        return ClientError(
            f"no server at {self.server}: {words}; start one with `hangwatch serve`, or name the "
            "right one with --server or HANGWATCH_SERVER"
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would send the token on to whatever host a redirect names."""

    def redirect_request(self, *_: object) -> None:
        return None


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
