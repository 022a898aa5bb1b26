"""Pages of lists: the body's `next`, the `Link` header, and limits. It never reads rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from hangwatch_server.api import fields

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=500, description="How many items a page has at most.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=200,
        description="`next` of the page before; absent for the first.",
        json_schema_extra=fields.CURSOR,
    ),
]
# Rank and group lists come from memory as a whole; pages are for clients that want them.
LongLimit = Annotated[int, Query(ge=1, le=200_000, description="How many items a page has.")]
Offset = Annotated[
    str | None,
    Query(max_length=9, pattern=r"^\d+$", description="`next` of the page before."),
]


class Page(BaseModel, Generic[T]):
    """Some items of a list, and the cursor of the next page when there are more."""

    items: tuple[T, ...]
    next: str | None = Field(default=None, description="Cursor of the next page; null on the last.")


def page(
    request: Request, response: Response, items: Sequence[T], next_cursor: str | None
) -> Page[T]:
    if next_cursor is not None:
        url = request.url.include_query_params(cursor=next_cursor)
        response.headers["link"] = f'<{url.path}?{url.query}>; rel="next"'
    return Page(items=tuple(items), next=next_cursor)


def slice_of(
    request: Request, response: Response, items: Sequence[T], limit: int, cursor: str | None
) -> Page[T]:
    """A page of a list that is complete in memory; the cursor is a position in it."""
    start = int(cursor or 0)
    end = start + limit
    return page(request, response, items[start:end], str(end) if end < len(items) else None)
