"""Silences: what nobody is to be alerted of, now or at planned times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from hangwatch_server import durations, texts, wiring
from hangwatch_server.alerts import people
from hangwatch_server.api import documents, examples, once, paging
from hangwatch_server.db import silences as silence_rows
from hangwatch_server.model.alerts import Matcher, MatchField, Repeat, Silence

router = APIRouter(
    prefix="/silences", tags=["alerts"], dependencies=[wiring.READ], route_class=once.OnceRoute
)
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=texts.NO_NUL)]


class NewMatcher(documents.Body):
    field: MatchField
    pattern: Pattern = Field(
        description="`*` is any text, `?` one character; upper and lower case differ.",
        examples=["gpt-*"],
    )


class NewSilence(documents.Body):
    matchers: tuple[NewMatcher, ...] = Field(
        min_length=1, max_length=people.MAX_MATCHERS, description="All of them must match."
    )
    starts_at: AwareDatetime | None = Field(default=None, description="Absent for now.")
    ends_at: AwareDatetime | None = Field(default=None, description="Of the first occurrence.")
    for_: str | None = Field(default=None, alias="for", examples=["2h"])
    repeat: Repeat = Field(
        default=Repeat.ONCE, description="Every 24 hours or 7 days, in UTC, until it is cancelled."
    )
    comment: str = Field(default="", max_length=500, pattern=texts.NO_NUL)

    @model_validator(mode="after")
    def _has_one_end(self) -> Self:
        if (self.ends_at is None) == (self.for_ is None):
            raise ValueError(
                'a silence has one end: give either {"for": "2h"} or {"ends_at": time}'
            )
        return self

    def end(self) -> datetime:
        """Raise BadDurationError for a `for` that cannot be read."""
        if self.ends_at is not None:
            return self.ends_at
        length_s = durations.seconds(self.for_ or "", longest_s=people.LONGEST.total_seconds())
        return (self.starts_at or datetime.now(UTC)) + timedelta(seconds=length_s)


@router.get("", summary="List silences, newest first", responses=examples.page(examples.SILENCE))
async def list_silences(
    request: Request,
    response: Response,
    house: wiring.House,
    over: Annotated[
        bool | None, Query(description="Only those that are over, or only those that are not.")
    ] = None,
    limit: paging.Limit = 50,
    cursor: paging.Cursor = None,
) -> paging.Page[Silence]:
    rows, after = await silence_rows.list_page(house.db, is_over=over, limit=limit, before=cursor)
    return paging.page(request, response, rows, after)


@router.post(
    "",
    status_code=201,
    dependencies=[once.KEY],
    summary="Hold back alarms of what matches, now or at planned times",
    responses=examples.of(examples.SILENCE, status=201),
)
async def create_silence(house: wiring.House, caller: wiring.Operator, body: NewSilence) -> Silence:
    return await people.silence(
        house.db,
        caller.name,
        matchers=[Matcher(field=one.field, pattern=one.pattern) for one in body.matchers],
        starts_at=body.starts_at,
        ends_at=body.end(),
        repeat=body.repeat,
        comment=body.comment,
    )


@router.get("/{silence_id}", summary="One silence", responses=examples.of(examples.SILENCE))
async def silence(house: wiring.House, silence_id: str) -> Silence:
    found = await silence_rows.find(house.db, silence_id)
    if found is None:
        raise people.unknown_silence(silence_id)
    return found


@router.delete(
    "/{silence_id}",
    summary="Cancel a silence; again is no error",
    responses=examples.of(examples.CANCELLED),
)
async def cancel_silence(house: wiring.House, caller: wiring.Operator, silence_id: str) -> Silence:
    return await people.cancel(house.db, caller.name, silence_id)
