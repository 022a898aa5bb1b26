"""Tokens in use: check, create, revoke, and the first admin token. Rows live in `db.tokens`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from hangwatch_server.db import tokens
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import HangwatchError
from hangwatch_server.security import secret_text
from hangwatch_server.security.scopes import Scope

# A revoked token is refused by every replica after this long; agents that are connected with it are
# shown out as fast (ingest.expulsion).
CACHE_S = 5.0
CACHE_SIZE = 4096
TOUCH_S = 60.0  # "last used" is for people; one write a minute is enough


class TokenError(HangwatchError):
    """A token that cannot be created as asked."""


class Authenticator:
    """Finds the token behind a text; remembers good answers for a few seconds."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._clock = clock
        self._cache: dict[str, tuple[float, tokens.Token]] = {}
        self._touched: dict[str, float] = {}

    async def check(self, text: str) -> tokens.Token | None:
        """The token with this text; None when it is unknown, revoked or expired."""
        if not text or len(text) > secret_text.MAX_CHARS:
            return None
        return await self.check_hash(secret_text.hash_of(text))

    async def check_hash(self, secret_hash: str) -> tokens.Token | None:
        """The same for a session, which carries only the hash of its token."""
        now_s = self._clock()
        found = self._cache.get(secret_hash)
        token = found[1] if found is not None and now_s - found[0] < CACHE_S else None
        if token is None:
            token = await tokens.find_by_hash(self._db, secret_hash)
            if token is None:
                return None
            self._remember(secret_hash, token, now_s)
        if not _is_live(token):
            return None
        await self._touch(token, now_s)
        return token

    async def create(
        self,
        name: str,
        scopes: Collection[str],
        *,
        node: str | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[tokens.Token, str]:
        """Store a new token and return it with its text, which nobody can recover later."""
        _check_request(scopes, node, expires_at)
        return await self._store(secret_text.new(), name, scopes, node, expires_at)

    async def revoke(self, token_id: str) -> bool:
        """Return False when no live token has this id."""
        is_revoked = await tokens.revoke(self._db, token_id)
        self._cache.clear()  # only now: a check meanwhile would have remembered it as live
        return is_revoked

    async def lapsed(self, token_ids: Collection[str]) -> frozenset[str]:
        """Which of these tokens, once accepted, would not be accepted any more."""
        if not token_ids:
            return frozenset()
        return frozenset(token_ids) - await tokens.good(self._db, token_ids)

    async def bootstrap(self, configured: str = "") -> str | None:
        """Make sure that an admin can get in; return the text of a token made just now, to print.

        A configured text becomes an admin token unless it is known already (known and revoked stays
        revoked) and is never printed.
        """
        if configured:
            await self._bootstrap_from(configured)
            return None
        if await tokens.count(self._db) > 0:
            return None
        _, text = await self._store(secret_text.new(), "admin", [Scope.ADMIN], None, None)
        return text

    async def _bootstrap_from(self, configured: str) -> None:
        if not secret_text.MIN_CHARS <= len(configured) <= secret_text.MAX_CHARS:
            raise TokenError(
                f"the bootstrap token has {len(configured)} characters, and must have "
                f"{secret_text.MIN_CHARS} to {secret_text.MAX_CHARS}: make one with "
                "`openssl rand -hex 32` and set HANGWATCH_BOOTSTRAP_TOKEN"
            )
        if await tokens.find_by_hash(self._db, secret_text.hash_of(configured)) is None:
            await self._store(configured, "bootstrap", [Scope.ADMIN], None, None)

    async def _store(
        self,
        text: str,
        name: str,
        scopes: Collection[str],
        node: str | None,
        expires_at: datetime | None,
    ) -> tuple[tokens.Token, str]:
        token = await tokens.create(
            self._db,
            name=name,
            scopes=tuple(str(scope) for scope in scopes),
            node=node,
            expires_at=expires_at,
            secret_hash=secret_text.hash_of(text),
            prefix=secret_text.prefix_of(text),
        )
        return token, text

    async def _touch(self, token: tokens.Token, now_s: float) -> None:
        if now_s - self._touched.get(token.id, float("-inf")) < TOUCH_S:
            return
        self._touched[token.id] = now_s
        await tokens.touch(self._db, token.id)

    def _remember(self, secret_hash: str, token: tokens.Token, now_s: float) -> None:
        if len(self._cache) >= CACHE_SIZE:
            self._cache.clear()
            self._touched.clear()
        self._cache[secret_hash] = (now_s, token)


def _is_live(token: tokens.Token) -> bool:
    if token.is_revoked:
        return False
    return token.expires_at is None or token.expires_at > datetime.now(UTC)


def _check_request(scopes: Collection[str], node: str | None, expires_at: datetime | None) -> None:
    names = [scope.value for scope in Scope]
    unknown = [scope for scope in scopes if scope not in names]
    if unknown or not scopes:
        raise TokenError(
            f"'{', '.join(unknown)}' is no scope: give one or more of {', '.join(names)}"
        )
    if Scope.AGENT in scopes and not node:
        raise TokenError(
            "an agent's token speaks for one node: name it, as in "
            "`hangwatch token create --scope agent --node NODE`"
        )
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise TokenError("the token would have expired already: give a later time")
