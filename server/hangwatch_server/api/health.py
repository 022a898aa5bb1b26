"""What orchestrators and Prometheus ask at the root: alive, ready, metrics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

import hangwatch_server
from hangwatch_server import metrics, wiring
from hangwatch_server.api import examples, openapi
from hangwatch_server.errors import HangwatchError

READY_TIMEOUT_S = 3
Shared = Literal["database", "background"]
router = APIRouter(tags=["health"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    status: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    status: str  # "ready", "degraded" (see database and redis), or "not ready"
    database: str  # "ok", else why not, or that it takes no writes
    redis: str  # "off" for a single server, "ok", else what is not heard and what it means
    background: str  # "ok", else which of the server's own tasks failed
    stopping: bool  # it was asked to stop: nothing new is to be sent here


@router.head("/healthz", include_in_schema=False)
@router.get(
    "/healthz", summary="Whether the process answers", responses=examples.of(examples.HEALTH)
)
async def healthz() -> Health:
    return Health(status="ok", version=hangwatch_server.__version__)


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    summary="Whether the server can do its work; 503 when not",
    responses=examples.of(examples.READINESS)
    | {
        503: {
            "model": Readiness,
            "description": "The database cannot be reached, one of the server's tasks failed, "
            "the server has just started, or it stops.",
        },
        422: openapi.error("A part of the request cannot be read."),
    },
)
async def readyz(
    response: Response,
    house: wiring.House,
    exclude: Annotated[
        tuple[Shared, ...],
        Query(
            description="What shall not count, given more than once for several. For a proxy of "
            "several servers: a database that is away is away for all of them, and each still "
            "says so in words and keeps its agents."
        ),
    ] = (),
) -> Readiness:
    unwritten = house.presence.missing()
    # Not even asked where it does not count: a database that does not answer costs the whole wait.
    database = (unwritten or "ok") if "database" in exclude else await _database(house)
    background = _background(house)
    stopping = house.leaving.is_on
    failing = {part for part, said in _shared(database, background) if said != "ok"}
    is_ready = failing <= set(exclude) and not stopping and not house.relay.is_new()
    response.status_code = 200 if is_ready else 503
    redis = _redis(house)
    # Degraded is ready: without Redis, or on a database that takes no writes, each server still
    # serves what it can, and it is so for all of them together.
    is_whole = redis in ("off", "ok") and not unwritten and not failing
    return Readiness(
        status=("ready" if is_whole else "degraded") if is_ready else "not ready",
        database=unwritten if database == "ok" and unwritten else database,
        redis=redis,
        background=background,
        stopping=stopping,
    )


def _shared(database: str, background: str) -> tuple[tuple[Shared, str], ...]:
    return ("database", database), ("background", background)


async def _database(house: wiring.House) -> str:
    asked = asyncio.create_task(_asked(house))
    try:
        # Not asyncio.timeout, which waits for the end of what it cancels: psycopg then asks the
        # database to cancel the query, and one that does not answer does not answer to that either.
        await asyncio.wait({asked}, timeout=READY_TIMEOUT_S)
    finally:
        asked.cancel()
    return asked.result() if asked.done() else f"no answer within {READY_TIMEOUT_S} s"


async def _asked(house: wiring.House) -> str:
    try:
        await house.db.ping()
    except (HangwatchError, OSError, TimeoutError) as error:
        return str(error) or type(error).__name__
    return "ok"


def _redis(house: wiring.House) -> str:
    if not house.settings.redis_url:
        return "off"
    if house.relay.is_new():
        return "what the other servers know has not come yet"
    return house.relay.missing() or "ok"


def _background(house: wiring.House) -> str:
    failing = house.background.failing()
    if not failing:
        return "ok"
    return f"failed and begun anew: {', '.join(failing)}; the server's log says why"


@router.get(
    "/metrics",
    dependencies=[wiring.READ],
    response_class=PlainTextResponse,
    summary="The server's own numbers for Prometheus",
    responses=examples.text("# TYPE hangwatch_jobs gauge\nhangwatch_jobs 3\n")
    | openapi.needs_token(),
)
async def prometheus() -> Response:
    return Response(metrics.render(), media_type=metrics.CONTENT_TYPE)
