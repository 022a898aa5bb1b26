"""Styles, scripts and pictures: each under an address that changes with its content.

So a browser asks once and never again, however busy the server is with agents; without that, each
page asks anew for some thirty files. The content is looked at once, when the server starts.
"""

from __future__ import annotations

import functools
import hashlib
from os import PathLike, stat_result
from typing import Any

from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

from hangwatch_server import assets

FOR_GOOD = "public, max-age=31536000, immutable"


@functools.cache
def address() -> str:
    """Where pages find the files of `web/static`: "/static/3f2a…", by the content of all."""
    folder = assets.web() / "static"
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return f"/static/{digest.hexdigest()[:12]}"


@functools.cache
def modules() -> tuple[str, ...]:
    """All modules that main.js brings, to be fetched at once and not one after the other."""
    found = sorted((assets.web() / "static/js").glob("*.js"))
    return tuple(f"{address()}/js/{path.name}" for path in found if path.name not in _NO_MODULES)


_NO_MODULES = frozenset({"preferences.js"})


class KeptFiles(StaticFiles):
    """Files whose content never changes under their address."""

    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response: Any = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = FOR_GOOD
        return response  # type: ignore[no-any-return]
