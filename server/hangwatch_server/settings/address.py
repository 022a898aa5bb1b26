"""The address under which people and machines reach this server."""

from __future__ import annotations

import socket

from hangwatch_server.settings.server import ServerSettings

_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104  (names to recognise, nothing is bound to them here)


def url_of(settings: ServerSettings) -> str:
    """Without a slash at its end; `port` must be the one that is listened on."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    host = socket.gethostname() if settings.host in _ANYWHERE else settings.host
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://{shown}:{settings.port}"
