"""The boundary of every page: an error becomes a page that says what failed and what to do next."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from hangwatch_server import errors, logs, security
from hangwatch_server.alerts.channels import BadChannelError
from hangwatch_server.pages import render

_log = logs.get()
_STATUS: tuple[tuple[type[errors.HangwatchError], int], ...] = (
    (security.ForbiddenError, 403),
    (errors.NotFoundError, 404),
    (BadChannelError, 422),
    (errors.BadRangeError, 422),
    (errors.ConflictError, 409),
    (errors.TooManyError, 429),
    (errors.DatabaseError, 503),
    (errors.HangwatchError, 400),
)
_NEXT = {
    403: "Sign in with a token that has the scope, then come back to this page.",
    404: "Jobs, captures and incidents are removed when their retention is over.",
    429: "Wait a few seconds, then reload the page.",
    500: "The server's log has the details under this time. Reload the page to try again.",
    503: "Hangwatch tries again by itself. Check that Postgres runs, then reload the page.",
}
_TITLES = {
    403: "Not allowed",
    404: "Not found",
    409: "Too late",
    429: "Too many requests",
    422: "Not understood",
    500: "A defect of Hangwatch",
    503: "The database cannot be reached",
}


class PageRoute(APIRoute):
    """A route whose errors are pages. A missing login is left to the application to redirect."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except security.UnauthorisedError:
                raise
            except errors.HangwatchError as error:
                page = error_page(request, _status_of(error), str(error))
                if isinstance(error, errors.TooManyError):
                    page.headers["retry-after"] = str(math.ceil(error.retry_after_s))
                return page
            except RequestValidationError as error:
                return error_page(request, 422, _invalid_text(error))
            except HTTPException as error:
                return error_page(request, error.status_code, error.detail)
            except Exception:
                # The request boundary: without this the reader would see an empty response.
                _log.exception("page_failed", path=request.url.path)
                return error_page(request, 500, "Something went wrong that should not.")

        return guarded


def error_page(request: Request, status: int, detail: str) -> Response:
    """What failed, why, and what to do next; also for addresses that no route knows."""
    title = _TITLES.get(status, HTTPStatus(status).phrase)
    values = {
        "title": f"{title} · Hangwatch",
        "section": "",
        "status": status,
        "heading": title,
        "detail": detail,
        "next_step": _NEXT.get(status, ""),
    }
    return render.page(request, "error", values, status)


def _status_of(error: errors.HangwatchError) -> int:
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def _invalid_text(error: RequestValidationError) -> str:
    return "; ".join(f"{raw['loc'][-1]}: {raw['msg']}" for raw in error.errors())
