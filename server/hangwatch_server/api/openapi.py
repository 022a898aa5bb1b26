"""The OpenAPI document: FastAPI's own, with true media types and the fields of paths explained."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from hangwatch_server.api import fields, problems

Document = dict[str, Any]  # free JSON, as FastAPI makes it
PROBLEM = "#/components/schemas/Problem"
ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"model": problems.Problem, "description": "No token, or one that is not known."},
    403: {"model": problems.Problem, "description": "The token's scopes do not allow it."},
    404: {"model": problems.Problem, "description": "Not known here."},
    422: {"model": problems.Problem, "description": "A part of the request cannot be read."},
}


def install(app: FastAPI) -> None:
    """Make `app.openapi()` give our document, built once."""

    def document() -> Document:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # the way FastAPI documents


def _build(app: FastAPI) -> Document:
    built: Document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
    )
    for operation in (item for path in built["paths"].values() for item in path.values()):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                parameter["schema"]["description"] = fields.IN_PATHS[parameter["name"]]
        for response in operation["responses"].values():
            _correct(response.get("content", {}))
    return built


def _correct(contents: Document) -> None:
    for media_type, content in list(contents.items()):
        # FastAPI describes events by a word of OpenAPI 3.2 in a document of 3.1.
        content.pop("itemSchema", None)
        # FastAPI files an error's model under the media type of the route's success.
        if content.get("schema", {}).get("$ref") == PROBLEM:
            del contents[media_type]
            contents[problems.MEDIA_TYPE] = content
