"""Who reads the form of a request: the forgery check needs a field of it, before its handler runs.

A handler whose forms are large or costly names a reader of its own, which may refuse to read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import Request
from starlette.datastructures import FormData

H = TypeVar("H", bound=Callable[..., Any])  # Any: handlers of every shape
C = TypeVar("C")
_MARK = "reads_its_form_with"


def form_read_by(reader: Callable[[Request, C], Awaitable[FormData]]) -> Callable[[H], H]:
    """Mark a handler: its form is read by this alone, which is told the caller."""

    def mark(handler: H) -> H:
        setattr(handler, _MARK, reader)
        return handler

    return mark


async def read(request: Request, caller: C) -> FormData:
    """The form, however often it is asked for."""
    reader = getattr(request.scope.get("endpoint"), _MARK, None)
    if reader is None:
        return await request.form()
    found: FormData = await reader(request, caller)
    return found
