"""What orchestrators and Prometheus ask at the root: alive, ready, metrics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

import hangwatch_server
from hangwatch_server import metrics
from hangwatch_server.api import deps, examples, openapi
from hangwatch_server.errors import HangwatchError

READY_TIMEOUT_S = 3
router = APIRouter(tags=["health"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    status: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    status: str  # "ready" or "not ready"
    database: str  # "ok", else why not
    background: str  # "ok", else which of the server's own tasks failed


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
            "description": "The database cannot be reached, or one of the server's tasks failed.",
        }
    },
)
async def readyz(response: Response, house: deps.House) -> Readiness:
    database, background = await _database(house), _background(house)
    is_ready = database == background == "ok"
    response.status_code = 200 if is_ready else 503
    return Readiness(
        status="ready" if is_ready else "not ready", database=database, background=background
    )


async def _database(house: deps.House) -> str:
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await house.db.ping()
    except (HangwatchError, OSError, TimeoutError) as error:
        return str(error) or f"no answer within {READY_TIMEOUT_S} s"
    return "ok"


def _background(house: deps.House) -> str:
    failing = house.background.failing()
    if not failing:
        return "ok"
    return f"failed and begun anew: {', '.join(failing)}; the server's log says why"


@router.get(
    "/metrics",
    dependencies=[deps.READ],
    response_class=PlainTextResponse,
    summary="The server's own numbers for Prometheus",
    responses=examples.text("# TYPE hangwatch_jobs gauge\nhangwatch_jobs 3\n")
    | openapi.needs_token(),
)
async def prometheus() -> Response:
    return Response(metrics.render(), media_type=metrics.CONTENT_TYPE)
