"""The calls of the REST API that commands and schedulers need, each a method with typed answers."""

from __future__ import annotations

import json
import os
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hangwatch_agent import settings
from hangwatch_agent.client import answers
from hangwatch_agent.client.answers import (
    Capture,
    Document,
    Hold,
    Incident,
    Incidents,
    Job,
    Jobs,
    NewToken,
    TokenRequest,
    Tokens,
    Verdict,
)
from hangwatch_agent.client.transport import TIMEOUT_S, ClientError, Transport
from hangwatch_agent.settings import AgentSettings

DEFAULT_SERVER = "http://127.0.0.1:8042"
PAGE = 100
LONGEST_POLL_S = 60.0  # of one request; proxies cut off what is silent much longer
AGAIN_S = 2.0  # between two looks at a job that is not there yet, or a server that is away
_VARIABLES = ("HANGWATCH_SERVER", "HANGWATCH_TOKEN", "HANGWATCH_TOKEN_FILE", "HANGWATCH_CA_FILE")

D = TypeVar("D", bound=Document)
Query = str | int | float | None


class Client:
    """Calls one server with one token; raises ClientError with a sentence fit to show."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        token: str = "",
        ca_file: Path | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = Transport(server, token, ca_file, sleep)
        self.server = self._transport.server
        self._sleep, self._clock = sleep, clock

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Client:
        """By HANGWATCH_SERVER, HANGWATCH_TOKEN or HANGWATCH_TOKEN_FILE, and HANGWATCH_CA_FILE."""
        given = {name: environ[name] for name in _VARIABLES if name in environ}
        found = settings.load(AgentSettings, known=(), flags={}, environ=given, toml=None)
        return cls(found.server or DEFAULT_SERVER, found.token, found.ca_file)

    def get(self, path: str, **query: Query) -> Any:
        """The JSON behind any path of the API, untyped, for callers with documents of their own."""
        return json.loads(self._transport.call("GET", path + _query(query), is_repeatable=True))

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """Post JSON to any path of the API; untyped like `get`."""
        return json.loads(self._transport.call("POST", path, json.dumps(body).encode()))

    # Jobs

    def job(self, name_or_id: str) -> Job:
        """A job by its id, else the newest of this name."""
        if not name_or_id:
            raise ClientError("the job's name is empty: `hangwatch status` lists all jobs")
        try:
            return self._get(f"/jobs/{_quoted(name_or_id)}", Job)
        except ClientError as error:
            if error.status != 404:
                raise
        return self._get(f"/jobs/by-name/{_quoted(name_or_id)}", Job)

    def jobs_page(self, *, state: str = "", query: str = "", cursor: str | None = None) -> Jobs:
        """A page of jobs, newest first; its `next` is the cursor of the following one."""
        asked = {"state": state or None, "q": query or None, "limit": PAGE, "cursor": cursor}
        return self._get("/jobs" + _query(asked), Jobs)

    def jobs(self, *, state: str = "", query: str = "") -> Iterator[Job]:
        """All jobs, newest first, page after page as they are taken."""
        page = self.jobs_page(state=state, query=query)
        yield from page.items
        while page.next is not None:
            page = self.jobs_page(state=state, query=query, cursor=page.next)
            yield from page.items

    def verdict(self, job_id: str, *, index: int | None = None, wait_s: float = 0.0) -> Verdict:
        """The verdict now or, where `index` is still its index, when it changes or time is up.

        At most 120 s. A smaller index than before means that the server began anew: go on with it.
        """
        waits = {"index": index, "wait": f"{wait_s:.3f}s"} if wait_s > 0 else {}
        path = f"/jobs/{_quoted(job_id)}/verdict{_query(waits)}"
        return self._get(path, Verdict, timeout_s=TIMEOUT_S + wait_s)

    def check(self, name_or_id: str, *, wait_s: float = 0.0) -> Job:
        """The job; with `wait_s` as soon as it is hung, failed or finished, at the latest then.

        While there is time, a job that is not there yet and a server that is away are waited for.
        """
        end_s = self._clock() + wait_s
        while True:
            left_s = end_s - self._clock()
            try:
                job = self.job(name_or_id)
                if left_s <= 0 or _is_settled(job.verdict):
                    return job
                self._await_change(job.verdict, min(left_s, LONGEST_POLL_S))
            except ClientError as error:
                if left_s <= 0 or not (error.is_passing or error.status == 404):
                    raise
                self._sleep(min(left_s, AGAIN_S))

    def _await_change(self, verdict: Verdict, wait_s: float) -> None:
        begun_s = self._clock()
        found = self.verdict(verdict.job, index=verdict.index, wait_s=wait_s)
        if found.index == verdict.index and self._clock() - begun_s < min(wait_s, AGAIN_S):
            self._sleep(min(wait_s, AGAIN_S))  # a server that stops sends its waiters away

    def hold(self, job_id: str, *, timeout_s: float = 30.0) -> Hold:
        """Returns when the evidence of a hang is stored, when there is no hang, or time is up."""
        path = f"/jobs/{_quoted(job_id)}/hold{_query({'timeout': f'{timeout_s:.3f}s'})}"
        return self._typed(
            self._transport.call("POST", path, timeout_s=TIMEOUT_S + timeout_s, is_repeatable=True),
            Hold,
        )

    # Incidents

    def incidents_page(
        self, *, states: Sequence[str] = (), job: str = "", cursor: str | None = None
    ) -> Incidents:
        """A page of incidents, newest first; no state means all that are shown to people."""
        asked = [("state", state) for state in states] + [("limit", str(PAGE))]
        asked += [("job", job)] if job else []
        asked += [("cursor", cursor)] if cursor else []
        return self._get(f"/incidents?{urllib.parse.urlencode(asked)}", Incidents)

    def incidents(self, *, states: Sequence[str] = (), job: str = "") -> Iterator[Incident]:
        """All incidents, newest first; `job` is an id or a whole name."""
        page = self.incidents_page(states=states, job=job)
        yield from page.items
        while page.next is not None:
            page = self.incidents_page(states=states, job=job, cursor=page.next)
            yield from page.items

    def incident(self, incident_id: str) -> Incident:
        return self._get(f"/incidents/{_quoted(incident_id)}", Incident)

    def acknowledge(self, incident_id: str, comment: str = "") -> Incident:
        """Say that somebody looks after it; again is no error."""
        path = f"/incidents/{_quoted(incident_id)}/acknowledge"
        return self._create(path, {"comment": comment}, Incident)

    # Captures

    def request_capture(
        self, job_id: str, ranks: str | None = None, native: bool = False
    ) -> Capture:
        """Ask for the stacks of these ranks, of all for None; see `finished_capture`."""
        body = {"kinds": ["stacks"], "native": native} | ({"ranks": ranks} if ranks else {})
        return self._create(f"/jobs/{_quoted(job_id)}/captures", body, Capture)

    def capture(self, capture_id: str, wait_s: float = 0.0) -> Capture:
        path = f"/captures/{_quoted(capture_id)}?wait={wait_s:.0f}s"
        return self._get(path, Capture, timeout_s=TIMEOUT_S + wait_s)

    def finished_capture(self, capture_id: str, timeout_s: float) -> Capture:
        """The capture once it is finished, or as it is when the time is up."""
        deadline = self._clock() + timeout_s
        while True:
            left_s = max(1.0, deadline - self._clock())
            found = self.capture(capture_id, min(left_s, 30.0))
            if found.state != "taking" or self._clock() >= deadline:
                return found

    def capture_text(self, capture_id: str, native: bool = False) -> str:
        """Its merged stacks, as people read them."""
        path = f"/captures/{_quoted(capture_id)}.txt{'?native=true' if native else ''}"
        return self._transport.call("GET", path, is_repeatable=True).decode()

    def capture_tree(self, capture_id: str, native: bool = False) -> bytes:
        """Its merged stacks as JSON."""
        path = f"/captures/{_quoted(capture_id)}/tree{'?native=true' if native else ''}"
        return self._transport.call("GET", path, is_repeatable=True)

    # Tokens

    def tokens(self) -> Tokens:
        return self._get("/tokens", Tokens)

    def create_token(self, wanted: TokenRequest) -> NewToken:
        """Never tried twice by itself: an answer that got lost holds a text that nobody has."""
        raw = self._transport.call("POST", "/tokens", msgspec.json.encode(wanted))
        return self._typed(raw, NewToken)

    def revoke_token(self, token_id: str, *, with_enrolled: bool = False) -> None:
        suffix = "?with_enrolled=true" if with_enrolled else ""
        self._transport.call("DELETE", f"/tokens/{_quoted(token_id)}{suffix}")

    def enrol(self, node: str) -> NewToken:
        """Exchange the enrolment token that this client shows for the token of a node."""
        raw = self._transport.call("POST", "/agent/enrol", json.dumps({"node": node}).encode())
        return self._typed(raw, NewToken)

    def _get(self, path: str, kind: type[D], timeout_s: float = TIMEOUT_S) -> D:
        raw = self._transport.call("GET", path, timeout_s=timeout_s, is_repeatable=True)
        return self._typed(raw, kind)

    def _create(self, path: str, body: object, kind: type[D]) -> D:
        """Its key makes the server do it once, however often it is asked."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        raw = self._transport.call(
            "POST", path, json.dumps(body).encode(), headers=headers, is_repeatable=True
        )
        return self._typed(raw, kind)

    def _typed(self, raw: bytes, kind: type[D]) -> D:
        try:
            return msgspec.structs.replace(msgspec.json.decode(raw, type=kind), raw=raw)
        except msgspec.DecodeError as error:
            raise ClientError(
                f"{self.server} does not answer as a Hangwatch server of this version: {error}; "
                "compare `hangwatch --version` on both ends"
            ) from error


def _is_settled(verdict: Verdict) -> bool:
    """Whether a scheduler that waits has its answer."""
    return verdict.exit_code == answers.HUNG or verdict.state == "finished"


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="", errors="surrogateescape")


def _query(asked: Mapping[str, Query]) -> str:
    given = {key: value for key, value in asked.items() if value is not None}
    return f"?{urllib.parse.urlencode(given)}" if given else ""
