"""Turns a template and its values into a page. Everything a job can influence is escaped here."""

from __future__ import annotations

import functools
import gzip
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import escape

import hangwatch_server
from hangwatch_server import assets, ranges, security
from hangwatch_server.pages import static_files, words

_WORTH_PACKING = 2048  # bytes; below this, packing costs more than it saves
_LONGEST_TAIL = 64
_PACKING = 5  # of 9: nearly as small as it gets, in a third of the time
Values = Mapping[str, Any]  # what a template shows: of any type, by the template's own names


@functools.cache
def environment() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(assets.web() / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(
        words=words,
        version=hangwatch_server.__version__,
        static=static_files.address(),
        modules=static_files.modules(),
    )
    templates.filters.update(
        duration=words.duration,
        clock=words.clock,
        short=words.short,
        plain=words.plain,
        slug=words.slug,
        range_text=ranges.text,
    )
    return templates


def page(request: Request, name: str, values: Values, status: int = 200) -> HTMLResponse:
    """A whole page: `name`.html extends base.html."""
    return part(request, name, values, status)


def part(request: Request, name: str, values: Values, status: int = 200) -> HTMLResponse:
    """A template as it stands, for what a script puts into a page as well."""
    text = environment().get_template(f"{name}.html").render(_with_request(request, values))
    body, headers = text.encode(), {"cache-control": "no-store", "vary": "accept-encoding"}
    if len(body) > _WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
        # Of random length, so that the packed size tells nothing of the token in the page.
        tail = f"<!-- {secrets.token_hex(secrets.randbelow(_LONGEST_TAIL))} -->"
        body = gzip.compress(body + tail.encode(), _PACKING)
        headers["content-encoding"] = "gzip"
    return HTMLResponse(body, status, headers=headers)


def fragment(request: Request, name: str, values: Values) -> str:
    """The part of a page that changes, as its stream sends it: `name`_live.html and a new title."""
    text = environment().get_template(f"{name}_live.html").render(_with_request(request, values))
    return f"<title>{escape(values['title'])}</title>\n{text}"


def _with_request(request: Request, values: Values) -> dict[str, Any]:
    caller = getattr(request.state, "caller", None)
    query = f"?{request.url.query}" if request.url.query else ""
    path = quote(request.scope["path"]).removesuffix("/live")  # a node's name may hold a "?"
    return {
        "caller": caller,
        "csrf_token": security.csrf_token(request),
        "may_operate": caller is not None and caller.may("operate"),
        "may_admin": caller is not None and caller.may("admin"),
        "missing": request.app.state.services.missing(),
        "now": datetime.now(UTC),
        "path": path or "/",
        "query": query,
        "here": (path or "/") + query,
        "as_json": "",
        **values,
    }
