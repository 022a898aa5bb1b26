"""Browser sessions: a random cookie whose hash is a row, and the CSRF text that goes with it.

A session ends when somebody signs out, when an administrator or the token behind it ends it, or
after its time; a cookie that was copied before that is then worth nothing. Good answers are
remembered for a few seconds, so another replica may answer that long after the end.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from hangwatch_server.db import sessions
from hangwatch_server.db.engine import Database
from hangwatch_server.db.sessions import Session, SessionKind

COOKIE = "hangwatch_session"
SECURE_COOKIE = "__Host-hangwatch_session"  # browsers take it from https and this very host alone
MAX_COOKIE_CHARS = 100
CACHE_S = 5.0
CACHE_SIZE = 4096
TOUCH_S = 60.0
LIFETIME_S = 12 * 3600.0


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(
        self,
        db: Database,
        lifetime_s: float = LIFETIME_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._lifetime_s, self._clock = db, lifetime_s, clock
        self._cache: dict[str, tuple[float, Session]] = {}
        self._touched: dict[str, float] = {}

    async def begin(
        self,
        kind: SessionKind,
        who: str,
        *,
        scopes: tuple[str, ...] = (),
        token: str | None = None,
        address: str = "",
    ) -> tuple[Session, str]:
        """A new session and the text of its cookie, which nobody can recover later."""
        cookie = secrets.token_urlsafe(32)
        session = await sessions.create(
            self._db,
            secret_hash=hash_of(cookie),
            kind=kind,
            who=who,
            scopes=scopes,
            token=token,
            address=address,
            lifetime_s=self._lifetime_s,
        )
        return session, cookie

    async def find(self, cookie: str) -> Session | None:
        """The live session of this cookie; None when it is unknown, ended or over."""
        if not cookie or len(cookie) > MAX_COOKIE_CHARS:
            return None
        key, now_s = hash_of(cookie), self._clock()
        found = self._cache.get(key)
        session = found[1] if found is not None and now_s - found[0] < CACHE_S else None
        if session is None:
            session = await sessions.find_by_hash(self._db, key)
            if session is None or session.is_over:
                return None
            self._remember(key, session, now_s)
        await self._touch(session.id, now_s)
        return session

    async def end(self, session_id: str) -> Session | None:
        """End a session now; None when it is not known or over already."""
        ended = await sessions.end(self._db, session_id)
        self._cache.clear()  # only now: a request meanwhile would have remembered it as live
        return ended

    async def _touch(self, session_id: str, now_s: float) -> None:
        if now_s - self._touched.get(session_id, float("-inf")) < TOUCH_S:
            return
        self._touched[session_id] = now_s
        await sessions.touch(self._db, session_id)

    def _remember(self, key: str, session: Session, now_s: float) -> None:
        if len(self._cache) >= CACHE_SIZE:
            self._cache.clear()
            self._touched.clear()
        self._cache[key] = (now_s, session)


def hash_of(cookie: str) -> str:
    """A plain SHA-256 is enough for 256 random bits (see secret_text)."""
    return hashlib.sha256(cookie.encode()).hexdigest()


def csrf_text(cookie: str) -> str:
    """What a form or script of ours must send back to prove that it is ours."""
    return hmac.new(cookie.encode(), b"csrf", hashlib.sha256).hexdigest()


def is_csrf_text(cookie: str, text: str) -> bool:
    return hmac.compare_digest(csrf_text(cookie).encode(), text.encode())


def cookie_of(request: Request) -> str:
    """The session's cookie. Over https only the one that no other host could have set."""
    return request.cookies.get(_name(request), "")


def set_cookie(request: Request, response: Response, cookie: str, lifetime_s: float) -> None:
    response.set_cookie(
        _name(request),
        cookie,
        max_age=int(lifetime_s),
        path="/",
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )


def delete_cookie(request: Request, response: Response) -> None:
    is_secure = request.url.scheme == "https"
    response.delete_cookie(
        _name(request), path="/", httponly=True, samesite="lax", secure=is_secure
    )


def _name(request: Request) -> str:
    return SECURE_COOKIE if request.url.scheme == "https" else COOKIE


def is_same_origin(request: Request) -> bool:
    """Whether the browser says that this request comes from our own pages.

    A request with neither header was not sent by a browser's page, and carries no ambient cookie
    of a victim (https://cheatsheetseries.owasp.org, Cross-Site Request Forgery Prevention).
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
