"""Settings and administration: what the server runs with, tokens, the audit trail, deleting jobs.

For administrators alone. Whatever changes something is a POST with a forgery token, behind a page
that says what will happen.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BeforeValidator

from hangwatch_server import patterns, texts, wiring
from hangwatch_server.db import audit
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.db import sessions as session_rows
from hangwatch_server.db import tokens as token_rows
from hangwatch_server.db.sessions import SessionKind
from hangwatch_server.errors import ConflictError, HangwatchError, NotFoundError
from hangwatch_server.model import Job
from hangwatch_server.pages import render, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.security import Scope, Sessions, TokenRequest, role_of
from hangwatch_server.services import Services
from hangwatch_server.settings import effective

PAGE_AUDIT = 50
router = APIRouter(route_class=PageRoute, dependencies=[wiring.ADMIN])

Name = Annotated[str, Form(min_length=1, max_length=100, pattern=texts.NO_NUL)]
Pattern = Annotated[str, Form(max_length=patterns.MAX_CHARS, pattern=texts.NO_NUL)]
NodeName = Annotated[str, Form(max_length=100, pattern=texts.NO_NUL)]


class Life(StrEnum):
    """How long a new token is good for."""

    FOREVER = ""
    MONTH = "30"
    QUARTER = "90"
    YEAR = "365"


LIVES = {
    Life.FOREVER: "until revoked",
    Life.MONTH: "30 days",
    Life.QUARTER: "90 days",
    Life.YEAR: "1 year",
}
# Name and meaning of what a token can be for, in the words that people use.
SCOPES = {
    Scope.READ: ("viewer", "sees everything, changes nothing: people, dashboards"),
    Scope.OPERATE: (
        "operator",
        "and takes captures, acknowledges, snoozes: people on call, schedulers",
    ),
    Scope.ADMIN: ("admin", "and makes tokens, sees the audit trail, deletes jobs"),
    Scope.AGENT: ("agent", "streams what one node sees: the agent there"),
    Scope.ENROL: ("enrolment", "gives each node of a cluster an agent's token of its own"),
}


KINDS = {
    SessionKind.TOKEN: "a token",
    SessionKind.OIDC: "the identity provider",
    SessionKind.PROXY: "the proxy",
}


@router.get("/settings")
async def settings(request: Request, house: wiring.House) -> Response:
    rows = effective.rows(house.settings, request.app.state.origins)
    values = {
        "title": "Settings · Hangwatch",
        "section": "settings",
        "tab": "settings",
        "changed": [row for row in rows if not row.is_default],
        "defaults": [row for row in rows if row.is_default],
        "retention_days": house.settings.retention_days,
        "suspicion_days": house.settings.suspicion_retention_days,
    }
    return render.page(request, "settings", values)


@router.get("/settings/tokens")
async def tokens(request: Request, house: wiring.House) -> Response:
    return render.page(request, "tokens", await _token_values(house))


@router.post("/settings/tokens")
async def create_token(
    request: Request,
    house: wiring.House,
    caller: wiring.Admin,
    name: Name,
    scope: Annotated[Scope, Form()],
    node: NodeName = "",
    jobs: Pattern = "",
    nodes: Pattern = "",
    uses: Annotated[int | None, BeforeValidator(lambda text: text or None), Form()] = None,
    life: Annotated[Life, Form()] = Life.FOREVER,
) -> Response:
    days = timedelta(days=int(life.value)) if life.value else None
    try:
        made, text = await house.tokens.create(
            TokenRequest(
                name=name.strip(),
                scopes=(scope,),
                node=node.strip() or None,
                expires_at=None if days is None else datetime.now(UTC) + days,
                jobs=jobs.strip(),
                nodes=nodes.strip(),
                uses=uses,
            )
        )
    except HangwatchError as error:
        values = await _token_values(house, problem=str(error))
        return render.page(request, "tokens", values, status=422)
    await audit.record(
        house.db, caller.name, "token.create", f"token:{made.id}", f"{made.name}: {scope}"
    )
    values = {
        "title": "New token · Hangwatch",
        "section": "settings",
        "tab": "tokens",
        "token": made,
        "text_of_token": text,
        "role_of": role_of,
        "server_url": str(request.base_url).rstrip("/"),
    }
    return render.page(request, "token_new", values, status=201)


@router.get("/settings/tokens/{token_id}/revoke")
async def ask_revoke(request: Request, house: wiring.House, token_id: str) -> Response:
    token = await _token(house, token_id)
    values = {
        "title": "Revoke a token · Hangwatch",
        "section": "settings",
        "tab": "tokens",
        "token": token,
    }
    return render.page(request, "token_revoke", values)


@router.post("/settings/tokens/{token_id}/revoke")
async def revoke(house: wiring.House, caller: wiring.Admin, token_id: str) -> Response:
    token = await _token(house, token_id)
    await house.tokens.revoke(token_id)
    await audit.record(house.db, caller.name, "token.revoke", f"token:{token_id}", token.name)
    return RedirectResponse("/settings/tokens", status_code=303)


@router.get("/settings/sessions")
async def signed_in(
    request: Request, house: wiring.House, before: Annotated[str, Query(max_length=300)] = ""
) -> Response:
    rows, more = await session_rows.list_page(house.db, limit=PAGE_AUDIT, before=before or None)
    values = {
        "title": "Sessions · Hangwatch",
        "section": "settings",
        "tab": "sessions",
        "rows": rows,
        "kinds": KINDS,
        "role_of": role_of,
        "more": f"/settings/sessions?before={more}" if more else "",
        "is_later_page": bool(before),
    }
    return render.page(request, "sessions", values)


@router.post("/settings/sessions/{session_id}/end")
async def end_session(
    request: Request, house: wiring.House, caller: wiring.Admin, session_id: str
) -> Response:
    keeper: Sessions = request.app.state.sessions
    ended = await keeper.end(session_id)
    if ended is None:
        raise NotFoundError(f"Session '{words.short(session_id, 40)}' is over already.")
    await audit.record(house.db, caller.name, "session.end", f"session:{session_id}", ended.who)
    return RedirectResponse("/settings/sessions", status_code=303)


@router.get("/settings/audit")
async def audit_trail(
    request: Request,
    house: wiring.House,
    before: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    rows, more = await audit.list_page(house.db, limit=PAGE_AUDIT, before=before or None)
    values = {
        "title": "Audit · Hangwatch",
        "section": "settings",
        "tab": "audit",
        "rows": rows,
        "more": f"/settings/audit?before={more}" if more else "",
        "is_later_page": bool(before),
    }
    return render.page(request, "audit", values)


@router.get("/jobs/{job_id}/delete")
async def ask_delete(request: Request, house: wiring.House, job_id: str) -> Response:
    job = await _job_that_is_over(house, job_id)
    values = {"title": "Delete a job · Hangwatch", "section": "jobs", "job": job}
    return render.page(request, "job_delete", values)


@router.post("/jobs/{job_id}/delete")
async def delete_job(house: wiring.House, caller: wiring.Admin, job_id: str) -> Response:
    job = await _job_that_is_over(house, job_id)
    await job_rows.delete(house.db, job_id)
    await audit.record(house.db, caller.name, "job.delete", f"job:{job_id}", job.name)
    return RedirectResponse("/", status_code=303)


async def _token_values(house: Services, problem: str = "") -> render.Values:
    rows = await token_rows.list_all(house.db)
    return {
        "title": "Tokens · Hangwatch",
        "section": "settings",
        "tab": "tokens",
        "live": [row for row in rows if not row.is_revoked],
        "revoked": [row for row in rows if row.is_revoked],
        "scopes": SCOPES,
        "role_of": role_of,
        "lives": LIVES,
        "problem": problem,
    }


async def _token(house: Services, token_id: str) -> token_rows.Token:
    token = await token_rows.find(house.db, token_id)
    if token is None or token.is_revoked:
        raise NotFoundError(
            f"Token '{words.short(token_id, 40)}' is not known, or revoked already."
        )
    return token


async def _job_that_is_over(house: Services, job_id: str) -> Job:
    job = await house.watch.job(job_id)
    if job.is_live:
        raise ConflictError(
            f"Job '{words.short(job.name, 60)}' still runs and would come back: stop it, then "
            "delete it."
        )
    return job
