"""Signing people in by an OpenID Connect provider: authorisation code with PKCE, state and nonce.

Nothing of a sign-in under way is stored here. The browser holds one random secret in a cookie;
state, nonce and the PKCE verifier are made from it, so that only the browser that began can end it.
Needs the packages of the extra `oidc`, and is imported only where a provider is set.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from hangwatch_server.errors import HangwatchError
from hangwatch_server.security import access, roles
from hangwatch_server.security.scopes import Role
from hangwatch_server.settings import ServerSettings

TIMEOUT_S = 10.0
KEPT_S = 600.0  # the provider's own description and keys
LEEWAY_S = 60  # between the provider's clock and ours
MAX_NAME = 200
# Signatures by a key of the provider's alone: none without a key, none by a secret that we share.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"]

Json = Mapping[str, Any]  # claims and documents of a provider are free JSON


class SignInError(HangwatchError):
    """The provider did not sign this person in, or its answer cannot be believed."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whom the provider has signed in, and the role that their groups give, None for none."""

    name: str
    role: Role | None


@dataclass(slots=True)
class _Kept:
    at_s: float
    document: Json
    keys: KeySet


class Provider:
    """One identity provider, as the settings name it."""

    def __init__(
        self, settings: ServerSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._issuer = settings.oidc_issuer
        self._rules = roles.parse(settings.roles)
        self._clock = clock
        self._kept: _Kept | None = None
        _check_issuer(self._issuer)

    @property
    def name(self) -> str:
        """What people know the provider by: its host."""
        return urlsplit(self._issuer).hostname or self._issuer

    async def address(self, secret: str, back_to: str) -> str:
        """Where to send the browser; raise SignInError when the provider cannot be asked."""
        async with self._client(back_to) as client:
            document = (await self._known(client)).document
            address, _ = client.create_authorization_url(
                _text(document, "authorization_endpoint"),
                state=derived(secret, "state"),
                nonce=derived(secret, "nonce"),
                code_verifier=derived(secret, "verifier"),
            )
        return str(address)

    async def person(self, secret: str, back_to: str, code: str, state: str) -> Person:
        """Whom the code stands for; raise SignInError for one that proves nobody."""
        if not hmac.compare_digest(state.encode(), derived(secret, "state").encode()):
            raise SignInError(
                "this sign-in was begun in another browser, or too long ago: begin again"
            )
        async with self._client(back_to) as client:
            known = await self._known(client)
            answer = await self._tokens(client, known.document, code, secret)
            claims = await self._claims(client, str(answer.get("id_token", "")), secret)
            groups = self._groups(claims)
            if groups is None and "userinfo_endpoint" in known.document:
                groups = self._groups(await self._userinfo(client, known.document, claims))
        return Person(self._name(claims), self._rules.role(groups or ()))

    def _client(self, back_to: str) -> Any:  # authlib has no types
        return AsyncOAuth2Client(
            client_id=self._settings.oidc_client_id,
            client_secret=self._settings.oidc_client_secret or None,
            token_endpoint_auth_method=None if self._settings.oidc_client_secret else "none",
            scope=self._settings.oidc_scopes,
            redirect_uri=back_to,
            code_challenge_method="S256",
            timeout=TIMEOUT_S,
            follow_redirects=False,
        )

    async def _tokens(self, client: Any, document: Json, code: str, secret: str) -> Json:
        try:
            answer: Json = await client.fetch_token(
                _text(document, "token_endpoint"),
                code=code,
                grant_type="authorization_code",
                code_verifier=derived(secret, "verifier"),
            )
        except (AuthlibBaseError, httpx.HTTPError, ValueError) as error:
            raise SignInError(f"{self.name} did not take the code: {error}") from error
        return answer

    async def _claims(self, client: Any, token: str, secret: str) -> Json:
        """The claims of an identity token that is meant for us, now, and for this sign-in."""
        try:
            claims: Json = (await self._decoded(client, token)).claims
            registry = jwt.JWTClaimsRegistry(
                leeway=LEEWAY_S,
                iss={"essential": True, "value": self._issuer},
                aud={"essential": True, "value": self._settings.oidc_client_id},
                exp={"essential": True},
                iat={"essential": True},
                sub={"essential": True},
                nonce={"essential": True, "value": derived(secret, "nonce")},
            )
            registry.validate(dict(claims))
        except (JoseError, ValueError) as error:
            raise SignInError(f"the identity that {self.name} sent is not good: {error}") from error
        if claims.get("azp", self._settings.oidc_client_id) != self._settings.oidc_client_id:
            raise SignInError(f"the identity that {self.name} sent is for another application")
        return claims

    async def _decoded(self, client: Any, token: str) -> jwt.Token:
        """By the keys that are known; once more by fresh ones, since providers change them."""
        known = await self._known(client)
        try:
            return jwt.decode(token, known.keys, algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            fresh = await self._asked(client)
            return jwt.decode(token, fresh.keys, algorithms=ALGORITHMS)

    async def _userinfo(self, client: Any, document: Json, claims: Json) -> Json:
        found = await self._get(client, _text(document, "userinfo_endpoint"))
        if found.get("sub") != claims["sub"]:
            raise SignInError(f"{self.name} told of two different people in one sign-in")
        return found

    async def _known(self, client: Any) -> _Kept:
        if self._kept is None or self._clock() - self._kept.at_s > KEPT_S:
            return await self._asked(client)
        return self._kept

    async def _asked(self, client: Any) -> _Kept:
        address = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        document = await self._get(client, address)
        if document.get("issuer") != self._issuer:
            raise SignInError(
                f"the provider at {self._issuer} calls itself {document.get('issuer')!r}: set "
                "--oidc-issuer to exactly that, if it is the right one"
            )
        keys = await self._get(client, _text(document, "jwks_uri"))
        try:
            found = KeySet.import_key_set(dict(keys))  # type: ignore[arg-type]
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise SignInError(f"the keys of {self.name} cannot be read: {error}") from error
        self._kept = _Kept(self._clock(), document, found)
        return self._kept

    async def _get(self, client: Any, address: str) -> Json:
        _check_issuer(address)
        try:
            # The access token is for userinfo alone; the others are asked before there is one.
            answer = await client.request("GET", address, withhold_token=client.token is None)
            answer.raise_for_status()
            found = answer.json()
        except (AuthlibBaseError, httpx.HTTPError, ValueError) as error:
            raise SignInError(
                f"{self.name} cannot be asked just now ({error}): try again, or sign in with a "
                "token"
            ) from error
        if not isinstance(found, dict):
            raise SignInError(f"{self.name} answered something that is no JSON object")
        return found

    def _groups(self, claims: Json) -> tuple[str, ...] | None:
        """None where the claim is missing."""
        found = claims.get(self._settings.oidc_groups_claim)
        if isinstance(found, str):
            return (found,)
        if isinstance(found, list):
            return tuple(str(group) for group in found[: roles.MAX_GROUPS])
        return None

    def _name(self, claims: Json) -> str:
        name = claims.get(self._settings.oidc_name_claim)
        is_doubtful = (
            self._settings.oidc_name_claim == "email" and claims.get("email_verified") is False
        )
        text = str(claims["sub"]) if not isinstance(name, str) or not name or is_doubtful else name
        return f"oidc:{''.join(filter(str.isprintable, text))[:MAX_NAME]}"


def derived(secret: str, purpose: str) -> str:
    """43 characters that only the holder of the secret can make."""
    made = hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


def _text(document: Json, key: str) -> str:
    found = document.get(key)
    if not isinstance(found, str):
        raise SignInError(f"the provider's description has no {key}")
    _check_issuer(found)
    return found


def _check_issuer(address: str) -> None:
    """Only https, since who can change an answer on its way can sign in as anybody."""
    parts = urlsplit(address)
    is_local = parts.scheme == "http" and access.is_loopback(parts.hostname or "")
    if not parts.hostname or not (parts.scheme == "https" or is_local):
        raise SignInError(
            f"'{address}' is no address to sign people in at: an identity provider is reached by "
            "https://"
        )
