"""Styles, scripts and pictures: each under an address that changes with its content.

So a browser asks once and never again, however busy the server is with agents; without that, each
page asks anew for some thirty files. The first visit still does: so they are read once and lie
packed in memory, since a file that is read and packed anew takes ten times as long.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
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


@dataclass(frozen=True, slots=True)
class _Kept:
    plain: bytes
    packed: bytes
    media_type: str


class KeptFiles(StaticFiles):
    """The files of a folder, whose content never changes under their address."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder)
        self._paths = {
            path.relative_to(folder).as_posix(): path
            for path in folder.rglob("*")
            if path.is_file()
        }
        self._kept: dict[str, _Kept] = {}

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path not in self._paths or scope["method"] != "GET":
            return await super().get_response(path, scope)
        kept = self._kept.get(path)
        if kept is None:
            kept = self._kept[path] = _read(self._paths[path])
        headers = {"cache-control": FOR_GOOD, "vary": "accept-encoding"}
        if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            return Response(kept.plain, headers=headers, media_type=kept.media_type)
        headers["content-encoding"] = "gzip"
        return Response(kept.packed, headers=headers, media_type=kept.media_type)


def _read(path: Path) -> _Kept:
    content = path.read_bytes()
    media_type, _ = mimetypes.guess_type(path.name)
    return _Kept(content, gzip.compress(content), media_type or "text/plain")
