"""A small OpenID Connect provider over real HTTP: it signs in at once whoever it is told to.

It checks what a provider checks (client, redirect address, PKCE, one use of a code), and can be
told to answer wrongly in one way at a time.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT_ID, CLIENT_SECRET = "hangwatch-test", "secret of the client"


@dataclass
class IdentityProvider:
    """What the next sign-in gives; tests change it between two."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)  # Any: free JSON
    userinfo: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    first: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    key: RSAKey = field(init=False)
    signs_with: RSAKey | OctKey | None = None  # instead of its own key
    denies: str = ""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def reset(self, **claims: Any) -> None:
        self.claims = {"sub": "1017", "email": "ada@example.org", "groups": ["oncall"], **claims}
        self.key = self.first
        self.userinfo, self.algorithm, self.signs_with, self.denies = {}, "RS256", None, ""

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "userinfo_endpoint": f"{self.url}/userinfo",
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        assert asked["client_id"] == CLIENT_ID
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        if self.denies:
            return f"{asked['redirect_uri']}?{urlencode({'error': self.denies})}"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, str] | None:
        """The identity token of a code, None for a request that a provider refuses."""
        asked = self.codes.pop(form.get("code", ""), None)
        given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        expected = base64.urlsafe_b64encode(challenge).decode().rstrip("=")
        if (
            asked is None
            or given.split(":")[0] != CLIENT_ID
            or asked["code_challenge"] != expected
            or asked["redirect_uri"] != form.get("redirect_uri")
        ):
            return None
        return {"access_token": "a", "token_type": "Bearer", "id_token": self._signed(asked)}

    def _signed(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": str(self.key.kid)}
        if self.algorithm == "none":
            parts = (json.dumps(header).encode(), json.dumps(claims).encode(), b"")
            return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
        return jwt.encode(header, claims, self.signs_with or self.key, algorithms=[self.algorithm])


@contextlib.contextmanager
def running() -> Iterator[IdentityProvider]:
    provider = IdentityProvider()
    provider.reset()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            match parts.path:
                case "/.well-known/openid-configuration":
                    self._json(provider.document())
                case "/keys":
                    self._json({"keys": [provider.key.as_dict(private=False)]})
                case "/userinfo":
                    self._json(provider.userinfo)
                case "/authorize":
                    self.send_response(302)
                    self.send_header("location", provider.authorize(asked))
                    self.end_headers()
                case _:
                    self._json({}, 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            answer = provider.token(form, self.headers.get("authorization", ""))
            refusal = {"error": "invalid_grant"}
            self._json(answer or refusal, 200 if answer else 400)

        def _json(self, content: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a test's output is its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
