"""Browser sessions: a signed cookie that stands for a token, and the CSRF text that goes with it.

Nothing is stored on the server except the signing key, so sessions survive a restart. The cookie
holds the hash of the token, not the token; each request looks the token up, so revoking it ends
the session.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

COOKIE = "hangwatch_session"
LIFETIME_S = 12 * 3600
MAX_COOKIE_CHARS = 1024
KEY_FILE = "session.key"
KEY_BYTES = 32


class Session(msgspec.Struct, frozen=True, kw_only=True):
    secret_hash: str
    expires_s: float  # seconds since the epoch, this server's clock on both ends
    nonce: str


class Sessions:
    """Issues and reads the cookie."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(self, secret_hash: str, now_s: float) -> str:
        session = Session(
            secret_hash=secret_hash, expires_s=now_s + LIFETIME_S, nonce=secrets.token_hex(8)
        )
        body = base64.urlsafe_b64encode(msgspec.json.encode(session)).decode()
        return f"{body}.{self._sign('session', body)}"

    def read(self, cookie: str, now_s: float) -> Session | None:
        """The session of this cookie; None when it is forged, damaged or over."""
        body, _, signature = cookie.partition(".")
        if len(cookie) > MAX_COOKIE_CHARS or not self._is_signed("session", body, signature):
            return None
        try:
            session = msgspec.json.decode(base64.urlsafe_b64decode(body), type=Session)
        except (msgspec.DecodeError, ValueError):
            return None
        return session if session.expires_s > now_s else None

    def csrf_text(self, session: Session) -> str:
        """What a form or script of ours must send back to prove that it is ours."""
        return self._sign("csrf", session.nonce + session.secret_hash)

    def is_csrf_text(self, session: Session, text: str) -> bool:
        return self._is_signed("csrf", session.nonce + session.secret_hash, text)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()

    def _is_signed(self, purpose: str, text: str, signature: str) -> bool:
        return hmac.compare_digest(self._sign(purpose, text).encode(), signature.encode())


def load_key(data_dir: Path) -> bytes:
    """Read the signing key of this data folder; when absent make it, readable by us alone."""
    path = data_dir / KEY_FILE
    with suppress(FileNotFoundError):
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key
        path.unlink()  # cut short by a full disk: every session of it is over
    data_dir.mkdir(parents=True, exist_ok=True)
    key = secrets.token_bytes(KEY_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
    return key


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
