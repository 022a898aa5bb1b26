"""The OpenAPI document: FastAPI's own, with true media types and the fields of paths explained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from hangwatch_server.api import etags, fields, problems

Document = dict[str, Any]  # free JSON, as FastAPI makes it
PROBLEM = "#/components/schemas/Problem"

Responses = dict[int | str, dict[str, Any]]  # FastAPI's own type for route responses


def error(description: str) -> dict[str, Any]:
    """An answer that is a problem document."""
    return {"model": problems.Problem, "description": description}


NOT_UNDERSTOOD: Responses = {400: error("The request is not understood at all.")}
TOO_MANY: Responses = {
    429: {
        **error("Too many wrong tokens of one address, or too many such calls are open."),
        "headers": {
            "Retry-After": {
                "description": "Seconds until it is worth asking again.",
                "schema": {"type": "integer"},
            }
        },
    }
}
ERRORS: Responses = {
    **NOT_UNDERSTOOD,
    401: error("No token, or one that is not known."),
    403: error("The token's scopes do not allow it."),
    404: error("Not known here."),
    422: error("A part of the request cannot be read."),
    **TOO_MANY,
    503: error("The database is away."),
}


def needs_token() -> Responses:
    """The refusals of a call that asks for a scope."""
    return {status: ERRORS[status] for status in (401, 403, 429)}


_TOO_LARGE = {"description": "A body beyond what the call reads."}
_CONFLICT = {"description": "In conflict with the present state."}
_NOT_CHANGED = {"description": "What `If-None-Match` names is still what there is."}
_ETAG = {"description": "Send it as `If-None-Match` next time.", "schema": {"type": "string"}}
_PROBLEM_CONTENT = {problems.MEDIA_TYPE: {"schema": {"$ref": PROBLEM}}}


def install(app: FastAPI, api: APIRouter) -> None:
    """Make `app.openapi()` give our document of the routes of `api`, built once."""

    def document() -> Document:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, api)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # the way FastAPI documents


def _build(app: FastAPI, api: APIRouter) -> Document:
    built: Document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
    )
    routes = {route.name: route for route in api_routes(api.routes)}
    for operation in (item for path in built["paths"].values() for item in path.values()):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                parameter["schema"]["description"] = fields.IN_PATHS[parameter["name"]]
        for status, response in operation["responses"].items():
            _correct(response.get("content", {}))
            _exemplify(response, routes[operation["operationId"]].responses.get(int(status), {}))
    for path, operations in built["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation)
    return built


def api_routes(routes: Iterable[Any]) -> Iterator[APIRoute]:
    """All routes in the document; newer versions of FastAPI keep routers as they were included."""
    for route in routes:
        if isinstance(route, APIRoute):
            if route.include_in_schema:
                yield route
        else:
            yield from api_routes(getattr(getattr(route, "original_router", None), "routes", ()))


def _exemplify(response: Document, declared: Document) -> None:
    """FastAPI drops every null of an example, and with it fields that are always there."""
    for media_type, content in declared.get("content", {}).items():
        if "example" in content:
            response["content"][media_type]["example"] = content["example"]


def _complete(path: str, method: str, operation: Document) -> None:
    """Answers that come from the layers round the routes."""
    responses = operation["responses"]
    if "requestBody" in operation:
        responses.setdefault("413", {**_TOO_LARGE, "content": _PROBLEM_CONTENT})
    if method != "get" and path.startswith(etags.PREFIX):
        responses.setdefault("409", {**_CONFLICT, "content": _PROBLEM_CONTENT})
    if method == "get" and etags.has_etag(path, responses["200"].get("content", {})):
        responses["200"]["headers"] = {"ETag": _ETAG}
        responses["304"] = _NOT_CHANGED
    operation["responses"] = dict(sorted(responses.items()))


def _correct(contents: Document) -> None:
    for media_type, content in list(contents.items()):
        # FastAPI describes events by a word of OpenAPI 3.2 in a document of 3.1.
        content.pop("itemSchema", None)
        # FastAPI files an error's model under the media type of the route's success.
        if content.get("schema", {}).get("$ref") == PROBLEM:
            del contents[media_type]
            contents[problems.MEDIA_TYPE] = content
