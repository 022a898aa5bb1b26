"""Errors as RFC 9457 problem documents with stable types. No logging, except of our own defects."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from hangwatch_server import durations, errors, logs, security
from hangwatch_server.alerts import people
from hangwatch_server.alerts.channels import BadChannelError
from hangwatch_server.alerts.secret_files import SecretError
from hangwatch_server.pages import boundary

TYPE_PREFIX = "urn:hangwatch:"
MEDIA_TYPE = "application/problem+json"
_log = logs.get()

# From the special to the general: the first class that matches decides.
_KNOWN: tuple[tuple[type[errors.HangwatchError], int, str], ...] = (
    (security.UnauthorisedError, 401, "unauthorised"),
    (security.ForbiddenError, 403, "forbidden"),
    (security.EnrolmentError, 403, "not-enrolled"),
    (security.TokenError, 422, "bad-token-request"),
    (BadChannelError, 422, "bad-channel"),
    (SecretError, 422, "unreadable-secret"),
    (errors.BadRangeError, 422, "bad-range"),
    (errors.BadCursorError, 422, "bad-cursor"),
    (durations.BadDurationError, 422, "bad-duration"),
    (people.BadSilenceError, 422, "bad-silence"),
    (errors.NotFoundError, 404, "not-found"),
    (errors.KeyReusedError, 422, "key-reused"),
    (errors.AnswerNotKeptError, 409, "answer-not-kept"),
    (errors.ConflictError, 409, "conflict"),
    (errors.TooManyError, 429, "too-many-requests"),
    (errors.StaleLeaseError, 503, "stale-lease"),
    (errors.DatabaseError, 503, "database"),
    (errors.DataFolderError, 503, "data-folder"),
    (errors.HangwatchError, 400, "refused"),
)
_TITLES = {
    "unauthorised": "A token is needed",
    "forbidden": "Not allowed",
    "not-enrolled": "The node cannot be enrolled with this token",
    "too-many-requests": "Too many requests",
    "bad-token-request": "The token cannot be created as asked",
    "bad-channel": "The channel cannot be as asked",
    "unreadable-secret": "A secret's file cannot be read",
    "bad-range": "Not a rank range",
    "bad-cursor": "Not a cursor of this list",
    "bad-duration": "Not a duration",
    "bad-silence": "The silence cannot be as asked",
    "not-found": "Not found",
    "conflict": "In conflict with the present state",
    "key-reused": "The key belongs to another request",
    "answer-not-kept": "Done before, and the answer is not kept",
    "stale-lease": "Another replica owns this job now",
    "database": "The database cannot be reached",
    "data-folder": "The data folder cannot be used",
    "refused": "The request cannot be carried out",
    "bad-request": "The request is not understood",
    "too-large": "The request is too large",
    "internal": "A defect of Hangwatch",
}


class Part(BaseModel):
    """One offending part of a request."""

    part: str = Field(examples=["query.limit"])
    message: str = Field(examples=["Input should be less than or equal to 500"])


class Problem(BaseModel):
    """An error, RFC 9457; `detail` says what failed, the likely cause and the next command."""

    type: str = Field(examples=["urn:hangwatch:not-found"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["job 'gpt-7b' is not known: list jobs with `hangwatch status`"])
    instance: str = Field(examples=["/api/v1/jobs/gpt-7b"])
    request_id: str = Field(examples=["8c7f0e4b6f0d4b6e9f2a"])
    errors: list[Part] = []


def install(app: FastAPI) -> None:
    app.add_exception_handler(errors.HangwatchError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def document(
    request: Request, status: int, slug: str, detail: str, parts: list[Part] | None = None
) -> Response:
    problem = Problem(
        type=TYPE_PREFIX + slug,
        title=_TITLES.get(slug) or HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        instance=request.url.path,
        request_id=getattr(request.state, "request_id", ""),
        errors=parts or [],
    )
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    content = problem.model_dump(exclude_defaults=True)
    return JSONResponse(content, status, headers=headers, media_type=MEDIA_TYPE)


def internal(request: Request) -> Response:
    """For a defect: what happened is in the log, under the request's id."""
    detail = "something went wrong that should not: the server's log has it under this request_id"
    return document(request, 500, "internal", detail)


async def _known(request: Request, error: Exception) -> Response:
    status, slug = next((status, slug) for kind, status, slug in _KNOWN if isinstance(error, kind))
    if status == 401 and _is_page(request):
        return RedirectResponse(f"/login?next={quote(_next(request), safe='')}", status_code=303)
    if status >= 500:
        _log.warning("request_refused", path=request.url.path, reason=error)
    response = document(request, status, slug, str(error))
    if isinstance(error, errors.TooManyError):
        response.headers["retry-after"] = str(math.ceil(error.retry_after_s))
    return response


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # registered for nothing else
    parts = [_part(raw) for raw in error.errors()]
    detail = "; ".join(f"{part.part}: {part.message}" for part in parts)
    return document(request, 422, "invalid-request", detail, parts)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # registered for nothing else
    if error.status_code == 404 and _is_page(request):
        return boundary.error_page(request, 404, f"There is nothing at {request.url.path}.")
    slug = _slug(error.status_code)
    detail = error.detail
    if error.status_code == 404:
        detail = f"there is nothing at {request.url.path}: see /openapi.json for all addresses"
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["allow"] = _allowed(request, headers.get("Allow", ""))
        detail = f"{request.method} is not for {request.url.path}: it takes {headers['allow']}"
    response = document(request, error.status_code, slug, detail)
    response.headers.update(headers)
    return response


def _allowed(request: Request, named: str) -> str:
    """All methods of this address; the framework names those of its first route alone."""
    methods = {one.strip() for one in named.split(",") if one.strip()}
    for template, operations in request.app.openapi()["paths"].items():
        if compile_path(template)[0].match(request.url.path):
            methods |= {method.upper() for method in operations}
    return ", ".join(sorted(methods))


def _slug(status: int) -> str:
    # The standard library's phrase for 413 differs between Python versions; a type must not.
    return "too-large" if status == 413 else HTTPStatus(status).phrase.lower().replace(" ", "-")


def _part(raw: dict[str, Any]) -> Part:  # pydantic's own, untyped error records
    return Part(part=".".join(str(piece) for piece in raw["loc"]), message=str(raw["msg"]))


def _is_page(request: Request) -> bool:
    """A browser on its way to a page is led to the login instead of being shown JSON.

    The script that asks for a page's events is no reader: it must be told that there are none.
    """
    accepted = request.headers.get("accept", "")
    is_read = "text/html" in accepted and "text/event-stream" not in accepted
    return is_read and not request.url.path.startswith("/api/")


def _next(request: Request) -> str:
    """Where to go on after the login: to the same page, from a form to the page that held it."""
    if request.method == "GET":
        query = request.url.query
        return request.url.path + (f"?{query}" if query else "")
    came_from = urlsplit(request.headers.get("referer", ""))
    return came_from.path if came_from.netloc == request.headers.get("host", "") else "/"
