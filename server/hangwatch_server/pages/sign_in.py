"""Begins a browser session, however the person was signed in, and notes who came from where."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import RedirectResponse

from hangwatch_server import logs, security
from hangwatch_server.db import audit
from hangwatch_server.db.sessions import SessionKind
from hangwatch_server.db.tokens import Token
from hangwatch_server.pages.login_form import is_local
from hangwatch_server.security import sessions

_log = logs.get()


def target_of(address: str) -> str:
    """Where to go on: a path of this server, whatever the address asked for."""
    return address if is_local(address) and address.isprintable() else "/"


def sentence(text: str) -> str:
    """An error's text as people read it on a page."""
    return f"{text[:1].upper()}{text[1:]}."


async def begin(
    request: Request,
    target: str,
    kind: SessionKind,
    who: str,
    *,
    scopes: tuple[str, ...] = (),
    token: Token | None = None,
) -> RedirectResponse:
    """Go on to `target` with a new session's cookie."""
    keeper: security.Sessions = request.app.state.sessions
    services, address = request.app.state.services, security.address_of(request)
    session, cookie = await keeper.begin(
        kind,
        who,
        scopes=token.scopes if token else scopes,
        token=token.id if token else None,
        address=address,
    )
    _log.info("signed_in", who=who, kind=kind.value, client=address)
    await audit.record(services.db, who, "login", f"session:{session.id}", f"{kind}: {address}")
    response = RedirectResponse(target, 303)
    sessions.set_cookie(request, response, cookie, services.settings.session_hours * 3600)
    return response
