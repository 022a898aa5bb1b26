"""Silences: what nobody is told of for a while, now or planned ahead as a maintenance window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from hangwatch_server import wiring
from hangwatch_server.alerts import matching, people
from hangwatch_server.alerts.channels import BadChannelError
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import silences as silence_rows
from hangwatch_server.durations import BadDurationError
from hangwatch_server.errors import ConflictError
from hangwatch_server.model import Incident, IncidentState
from hangwatch_server.model.alerts import Matcher, MatchField, Repeat, Silence
from hangwatch_server.pages import (
    alert_words,
    channel_form,
    headline,
    render,
    silence_form,
)
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.pages.silence_form import Draft
from hangwatch_server.services import Services

MAX_PREVIEW = 500  # active incidents that are looked at
SHOWN_PREVIEW = 5
PAGE_OVER = 20
_PERIODS = {Repeat.DAILY: timedelta(days=1), Repeat.WEEKLY: timedelta(weeks=1)}
router = APIRouter(route_class=PageRoute, dependencies=[wiring.OPERATE])


async def _form(request: Request) -> FormData:
    return await request.form()


Form = Annotated[FormData, Depends(_form)]
Wanted = Annotated[str, Query(max_length=200)]


@router.get("/silences")
async def list_silences(
    request: Request,
    house: wiring.House,
    job: Wanted = "",
    node: Wanted = "",
    kind: Wanted = "",
) -> Response:
    """The address may name what a new one is to match: so an incident's page leads here."""
    given = ((MatchField.JOB, job), (MatchField.NODE, node), (MatchField.KIND, kind))
    matchers = tuple((field.value, value) for field, value in given if value)
    return await _page(request, house, Draft(matchers=matchers))


@router.post("/silences")
async def create_silence(
    request: Request, house: wiring.House, caller: wiring.Operator, form: Form
) -> Response:
    draft = silence_form.read(form)
    try:
        wanted = silence_form.wanted(draft, datetime.now(UTC))
        made = await people.silence(
            house.db,
            caller.name,
            matchers=wanted.matchers,
            starts_at=wanted.starts_at,
            ends_at=wanted.ends_at,
            repeat=wanted.repeat,
            comment=wanted.comment,
        )
    except (people.BadSilenceError, BadDurationError, BadChannelError, ConflictError) as error:
        return await _page(request, house, draft, problem=str(error))
    return RedirectResponse(f"/silences#silence-{made.id}", status_code=303)


@router.post("/silences/preview")
async def preview(request: Request, house: wiring.House, form: Form) -> Response:
    """Which of the incidents that are open now the form's matchers match."""
    draft = silence_form.read(form)
    return render.part(request, "silence_preview", await _preview(house, draft))


@router.post("/silences/{silence_id}/cancel")
async def cancel_silence(house: wiring.House, caller: wiring.Operator, silence_id: str) -> Response:
    await people.cancel(house.db, caller.name, silence_id)
    return RedirectResponse("/silences", status_code=303)


async def _page(request: Request, house: Services, draft: Draft, *, problem: str = "") -> Response:
    now = datetime.now(UTC)
    standing = await silence_rows.standing(house.db)
    over, _ = await silence_rows.list_page(house.db, is_over=True, limit=PAGE_OVER)
    values = {
        "title": "Silences · Hangwatch",
        "section": "alerts",
        "tab": "silences",
        "on": [(row, matching.end_of(row, now)) for row in standing if matching.is_on(row, now)],
        "planned": [(row, _next(row, now)) for row in standing if not matching.is_on(row, now)],
        "over": over,
        "draft": draft,
        "lengths": silence_form.LENGTHS,
        "alert_words": alert_words,
        "problem": problem,
        **await _preview(house, draft),
    }
    return render.page(request, "silences", values, status=422 if problem else 200)


async def _preview(house: Services, draft: Draft) -> render.Values:
    """Nothing is matched before there is a pattern: an empty form holds nothing back."""
    try:
        matchers = channel_form.matchers_of(draft.matchers)
    except BadChannelError:
        matchers = ()
    active, _ = await incident_rows.list_page(
        house.db, states=(IncidentState.CONFIRMED,), limit=MAX_PREVIEW
    )
    matched = [row for row in active if matchers and _matches(matchers, row)]
    return {
        "has_matchers": bool(matchers),
        "active": len(active),
        "matched": len(matched),
        "shown": [(row, headline.of_incident(row)) for row in matched[:SHOWN_PREVIEW]],
    }


def _matches(matchers: tuple[Matcher, ...], incident: Incident) -> bool:
    return matching.matches(matchers, matching.subject_of(incident))


def _next(silence: Silence, now: datetime) -> datetime:
    """When it is on next: at its beginning, or a whole number of periods later."""
    period = _PERIODS.get(silence.repeat)
    if period is None or now < silence.starts_at:
        return silence.starts_at
    return silence.starts_at + ((now - silence.starts_at) // period + 1) * period
