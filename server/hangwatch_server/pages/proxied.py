"""Signing in whom a trusted proxy has signed in already, by the headers that it adds.

The headers alone let nobody in: they begin a session, which only holds as long as the proxy says
the same name (`security.access`), and which can be ended like any other.
"""

from __future__ import annotations

from fastapi import Request, Response

from hangwatch_server import logs, security
from hangwatch_server.db.sessions import SessionKind
from hangwatch_server.pages import sign_in
from hangwatch_server.pages.login_form import login_page
from hangwatch_server.security import SCOPE_OF, roles
from hangwatch_server.settings import ServerSettings

MAX_NAME = 200
_log = logs.get()


async def signed_in(request: Request, next_page: str) -> Response | None:
    """On to the page that was asked for; None where no proxy names anybody."""
    settings: ServerSettings = request.app.state.settings
    name = request.headers.get(settings.proxy_user_header or "-", "")
    if not name or not getattr(request.state, "is_by_proxy", False):
        return None
    groups = request.headers.get(settings.proxy_groups_header or "-", "")
    listed = [group.strip() for group in groups.split(",")][: roles.MAX_GROUPS]
    role = roles.parse(settings.roles).role(listed)
    if len(name) > MAX_NAME or not name.isprintable():
        role = None
    if role is None:
        _log.warning("sign_in_refused", client=security.address_of(request), who=name[:MAX_NAME])
        why = (
            f"'{name[:MAX_NAME]}' is in no group that may use Hangwatch: an administrator gives "
            "groups their roles with --roles"
        )
        return login_page(request, "/", sign_in.sentence(why), 403)
    return await sign_in.begin(
        request,
        sign_in.target_of(next_page),
        SessionKind.PROXY,
        f"proxy:{name}",
        scopes=(SCOPE_OF[role].value,),
    )
