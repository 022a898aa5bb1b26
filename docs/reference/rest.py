"""The calls of the REST API as a page, from the OpenAPI document and the routes' scopes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tables import table

from hangwatch_server.api import openapi, routes
from hangwatch_server.api.routes import PREFIX
from hangwatch_server.app import create_app
from hangwatch_server.security.scopes import Scope
from hangwatch_server.settings import ServerSettings

WIDTH = 100  # of an example's lines
STRENGTH = [Scope.ENROL, Scope.READ, Scope.OPERATE, Scope.ADMIN]

Json = Any  # the OpenAPI document is free JSON


def openapi_text() -> str:
    """The document that the server gives at /openapi.json, so that a change of it is reviewed."""
    document = create_app(ServerSettings()).openapi()
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def api_sections() -> Iterator[str]:
    app = create_app(ServerSettings())
    document = app.openapi()
    needed = dict(scopes())
    shown: dict[str, str] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            scope = needed.get((method.upper(), path), "none")
            call = f"{method.upper()} {path}"
            yield from section(document, call, operation, scope, shown)


def scopes() -> Iterator[tuple[tuple[str, str], str]]:
    """((method, path), strongest scope that one of its dependencies asks for)."""
    for route in openapi.api_routes(routes.router().routes):
        asked = [scope for scope in STRENGTH if scope in asked_for(route.dependant)]
        for method in route.methods:
            for path in (route.path_format, PREFIX + route.path_format):
                yield (method, path), str(asked[-1]) if asked else "none"


def asked_for(dependant: Any) -> set[Scope]:
    """The scopes in the closures that `security.require` made."""
    found: set[Scope] = set()
    for inner in dependant.dependencies:
        cells = getattr(inner.call, "__closure__", None) or ()
        found |= {cell.cell_contents for cell in cells if isinstance(cell.cell_contents, Scope)}
        found |= asked_for(inner)
    return found


def section(
    document: Json, call: str, operation: Json, scope: str, shown: dict[str, str]
) -> Iterator[str]:
    yield f"### `{call}`"
    yield ""
    more = f" {operation['description']}" if "description" in operation else ""
    yield f"{operation['summary']}. Scope: {scope}.{more}"
    yield ""
    fields = [*parameters(document, operation), *body_fields(document, operation)]
    if fields:
        yield from table(("field", "where", "type", "default", "what"), fields)
        yield ""
    yield from example(call, operation, shown)
    yield from errors(operation)


def parameters(document: Json, operation: Json) -> Iterator[Sequence[str]]:
    for one in operation.get("parameters", ()):
        is_needed = one.get("required", False)
        yield field_row(document, one["name"], one["in"], one["schema"], is_needed)


def body_fields(document: Json, operation: Json) -> Iterator[Sequence[str]]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        # An optional body is its schema or null.
        choices = content["schema"].get("anyOf", [content["schema"]])
        named = [resolved(document, one) for one in choices if "$ref" in one]
        schema = named[0] if named else choices[0]
        for name, inner in schema["properties"].items():
            is_needed = name in schema.get("required", ())
            yield field_row(document, name, "body", inner, is_needed)


def field_row(
    document: Json, name: str, where: str, schema: Json, is_needed: bool
) -> Sequence[str]:
    value = schema.get("default")
    shown = "required" if is_needed else f"`{json.dumps(value)}`" if value is not None else "absent"
    examples = schema.get("examples", ())
    what = schema.get("description", "")
    if examples:
        what = f"{what} Such as `{json.dumps(examples[0])}`.".strip()
    return f"`{name}`", where, kind(document, schema), shown, what


def kind(document: Json, schema: Json) -> str:
    if "anyOf" in schema:
        return " or ".join(
            kind(document, one) for one in schema["anyOf"] if one.get("type") != "null"
        )
    schema = resolved(document, schema)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {kind(document, schema['items'])}"
    bounds = [f"≥ {schema['minimum']}"] if "minimum" in schema else []
    bounds += [f"≤ {schema['maximum']}"] if "maximum" in schema else []
    bounds += [f"< {schema['exclusiveMaximum']}"] if "exclusiveMaximum" in schema else []
    bounds += [f"≤ {schema['maxLength']} characters"] if "maxLength" in schema else []
    return ", ".join([str(schema.get("format", schema["type"])), *bounds])


def resolved(document: Json, schema: Json) -> Json:
    if "$ref" not in schema:
        return schema
    return document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]


def example(call: str, operation: Json, shown: dict[str, str]) -> Iterator[str]:
    """The answers that are no errors; `shown` says where an equal example stands already."""
    for status, answer in operation["responses"].items():
        if not status.startswith(("2", "3")):
            continue
        contents = answer.get("content", {}).items()
        given = [(media, one["example"]) for media, one in contents if "example" in one]
        if not given:
            yield f"Answers {status} without a body."
            yield ""
        for media, value in given:
            yield from answered(f"Answers {status}", media, value, shown)
            remember(call, value, shown)


def answered(answers: str, media: str, value: Json, shown: dict[str, str]) -> Iterator[str]:
    is_json = media == "application/json"
    if is_json and (place := shown.get(json.dumps(value))) is not None:
        yield f"{answers}: {place}."
    else:
        yield f"{answers}, `{media}`:"
        yield ""
        yield "```json" if is_json else "```text"
        yield pretty(value) if is_json else value.rstrip()
        yield "```"
    yield ""


def remember(call: str, value: Json, shown: dict[str, str]) -> None:
    shown.setdefault(json.dumps(value), f"as at `{call}`")
    if isinstance(value, dict) and "items" in value:
        for item in value["items"]:
            shown.setdefault(json.dumps(item), f"one of the `items` of `{call}`")
            for name, inner in item.items():
                if isinstance(inner, dict):
                    shown.setdefault(json.dumps(inner), f"`{name}` of an item of `{call}`")


def pretty(value: Json, margin: str = "", room: int = WIDTH) -> str:
    """JSON that is as short as it can be read: what fits into a line stays on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) <= room - len(margin) or not isinstance(value, dict | list):
        return flat
    inner = margin + " "
    if isinstance(value, list):
        parts = [pretty(one, inner) for one in value]
        return "[\n" + ",\n".join(inner + part for part in parts) + f"\n{margin}]"
    parts = [
        f"{json.dumps(key)}: {pretty(one, inner, WIDTH - len(key) - 5)}"
        for key, one in value.items()
    ]
    return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{margin}}}"


def errors(operation: Json) -> Iterator[str]:
    found = [
        f"{status} ({answer['description'].rstrip('.').lower()})"
        for status, answer in operation["responses"].items()
        if status.startswith(("4", "5"))
    ]
    if found:
        yield "Errors: " + ", ".join(found) + "."
        yield ""
