"""Every route of the application, however its routers are nested: for tests that forget none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.routing import Mount, Route, WebSocketRoute

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, order=True)
class Found:
    path: str
    method: str  # WS for a WebSocket, FILES for a mounted folder

    @property
    def is_safe(self) -> bool:
        return self.method in SAFE or self.method in ("WS", "FILES")


def every(app: FastAPI) -> list[Found]:
    """Sorted by path; of GET and its HEAD only GET."""
    return sorted(set(_walk(app.routes, "")))


def _walk(routes: Iterable[Any], prefix: str) -> Iterator[Found]:
    for route in routes:
        if isinstance(route, Mount):
            # The address of the static files holds a digest of their content.
            yield Found("/" + route.path.split("/")[1], "FILES")
        elif isinstance(route, WebSocketRoute):
            yield Found(prefix + route.path, "WS")
        elif isinstance(route, Route):
            yield from (
                Found(prefix + route.path, method)
                for method in route.methods or ()
                if method != "HEAD"
            )
        else:
            inner = prefix + route.include_context.prefix
            yield from _walk(route.original_router.routes, inner)
