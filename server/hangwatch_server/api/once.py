"""`Idempotency-Key`: a request that creates something is done once, however often it comes.

The header is that of the IETF draft (draft-ietf-httpapi-idempotency-key-header). A repetition gets
the first answer again; one that comes while the first is being done waits for it. An error frees
the key, since nothing was created. Answers that hold a secret are not kept: a repetition is then
told that it was done.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from hangwatch_server import logs, security, wiring
from hangwatch_server.db import idempotency
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import (
    AnswerNotKeptError,
    ConflictError,
    DatabaseError,
    KeyReusedError,
)

REPLAYED = "idempotency-replayed"
WAIT_S = 10.0  # for the first request; whoever waits longer is told to come again
LOOK_S = 0.1
_log = logs.get()

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="Any text of yours, new for each thing to create: the same key and request "
        "again, within a day, gets the same answer and creates nothing.",
        examples=["8e03978e-40d5-43e8-bc93-6894a57f9324"],
    ),
]


class _Answered(Exception):
    """No error: it ends the request with an answer that was kept."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


@dataclass(frozen=True, slots=True)
class _Claim:
    db: Database
    key: idempotency.Key
    is_secret: bool


class OnceRoute(APIRoute):
    """A route of which those requests that carry a key are done once."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def once(request: Request) -> Response:
            try:
                response = await handler(request)
            except _Answered as answered:
                return answered.response
            except BaseException:
                await _release(request)
                raise
            await _keep(request, response)
            return response

        return once


async def _claim(
    request: Request, house: wiring.House, _: wiring.Operator, key: KeyHeader = None
) -> None:
    await _begin(request, house.db, key, is_secret=False)


async def _claim_secret(
    request: Request, house: wiring.House, _: wiring.Admin, key: KeyHeader = None
) -> None:
    await _begin(request, house.db, key, is_secret=True)


# A key is only looked at for who may create such a thing; what holds a secret, administrators do.
KEY = Depends(_claim)
SECRET = Depends(_claim_secret)


async def _begin(request: Request, db: Database, key: str | None, *, is_secret: bool) -> None:
    """Claim the key, or end the request with the answer that its first bearer got."""
    if key is None:
        return
    asked = idempotency.Key(
        caller=_caller(request), key=key, fingerprint=await _fingerprint(request)
    )
    kept = await _claimed(db, asked)
    if kept is None:
        request.state.once = _Claim(db, asked, is_secret)
        return
    if kept.fingerprint != asked.fingerprint:
        raise KeyReusedError(
            "this Idempotency-Key was given to another request before: make a new key for each "
            "thing to create"
        )
    raise _Answered(_again(kept))


async def _claimed(db: Database, asked: idempotency.Key) -> idempotency.Kept | None:
    """None once the claim is ours; else what the other left, once it is done."""
    end_s = asyncio.get_running_loop().time() + WAIT_S
    while True:
        kept = await idempotency.claim(db, asked)
        if kept is None or kept.status is not None or kept.fingerprint != asked.fingerprint:
            return kept
        if asyncio.get_running_loop().time() >= end_s:
            raise ConflictError(
                "a request with this Idempotency-Key is still being done: ask again in a minute"
            )
        await asyncio.sleep(LOOK_S)


def _again(kept: idempotency.Kept) -> Response:
    assert kept.status is not None  # it is done
    if kept.body is None:
        raise AnswerNotKeptError(
            "this was done under the same Idempotency-Key before, and its answer held a secret "
            "that is kept nowhere: if that answer got lost, revoke what was created and make "
            "another under a new key"
        )
    headers = {REPLAYED: "true"} | ({"location": kept.location} if kept.location else {})
    return Response(kept.body, kept.status, headers, media_type="application/json")


async def _keep(request: Request, response: Response) -> None:
    claim: _Claim | None = getattr(request.state, "once", None)
    if claim is None:
        return
    if not 200 <= response.status_code < 300:
        await _release(request)
        return
    try:
        await idempotency.complete(
            claim.db,
            claim.key,
            status=response.status_code,
            body=None if claim.is_secret else bytes(response.body),
            location=response.headers.get("location"),
        )
    except DatabaseError as error:
        # It is done and the caller is told so; a repetition will find the claim and wait.
        _log.warning("idempotency_answer_not_kept", path=request.url.path, error=str(error))


async def _release(request: Request) -> None:
    claim: _Claim | None = getattr(request.state, "once", None)
    if claim is not None:
        with contextlib.suppress(DatabaseError):
            await idempotency.release(claim.db, claim.key)


def _caller(request: Request) -> str:
    """Whoever was let in, by the token or as the person; a name alone may be another's too."""
    caller: security.Caller = request.state.caller
    return _hash(caller.id.encode())


async def _fingerprint(request: Request) -> str:
    where = f"{request.method} {request.url.path}?{request.url.query}"
    return _hash(where.encode(), await request.body())


def _hash(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8) + part)
    return whole.hexdigest()
