"""The login page as it is drawn: the form for a token, and the ways by which others vouch."""

from __future__ import annotations

from fastapi import Request, Response

from hangwatch_server.pages import render


def login_page(
    request: Request, next_page: str, error: str = "", status: int = 0, *, is_over: bool = False
) -> Response:
    """The form; with `error` it says why the last try failed."""
    provider = getattr(request.app.state, "oidc", None)
    values = {
        "title": "Sign in · Hangwatch",
        "section": "",
        "next_page": next_page if is_local(next_page) else "/",
        "error": error,
        "is_over": is_over,
        "provider": provider.name if provider is not None else "",
        "is_proxied": bool(request.app.state.settings.proxy_user_header),
    }
    return render.page(request, "login", values, status or (401 if error else 200))


def is_local(address: str) -> bool:
    """Whether an address stays on this server: `//host` and `/\\host` lead elsewhere."""
    return address.startswith("/") and address[1:2] not in ("/", "\\")
