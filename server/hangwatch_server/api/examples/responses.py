"""What an example is, and how a route shows one."""

from __future__ import annotations

from typing import Any

Json = Any  # an example is free JSON by nature
Responses = dict[int | str, dict[str, Any]]  # FastAPI's own type for route responses
TIME = "2026-11-20T18:00:03Z"


def of(example: Json, *, status: int = 200) -> Responses:
    return {status: {"content": {"application/json": {"example": example}}}}


def page(item: Json) -> Responses:
    return of({"items": [item], "next": None})


def text(example: str, *, media_type: str = "text/plain") -> Responses:
    return {200: {"content": {media_type: {"example": example}}}}


def also_plain(responses: Responses, example: str) -> Responses:
    """The same answer as text too, where `format=plain` is asked for."""
    content = {"text/plain": {"schema": {"type": "string"}, "example": example}}
    return {
        status: {**answer, "content": {**answer["content"], **content}}
        for status, answer in responses.items()
    }
