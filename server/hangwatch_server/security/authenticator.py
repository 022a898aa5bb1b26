"""Tokens in use: check, create, enrol, revoke, and the first one. Rows live in `db.tokens`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from hangwatch_server import patterns
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


class EnrolmentError(HangwatchError):
    """An enrolment token that may not, or no longer, enrol this node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A token that an administrator asks for."""

    name: str
    scopes: tuple[str, ...]
    node: str | None = None
    expires_at: datetime | None = None
    jobs: str = ""  # pattern of the names of the jobs that it may see
    nodes: str = ""  # pattern of the nodes that it may enrol
    uses: int | None = None  # how many of them
    may_replace: bool = False  # also those that have a live token


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
        """The same by the hash of its text."""
        return await self._found(
            f"hash:{secret_hash}", lambda: tokens.find_by_hash(self._db, secret_hash)
        )

    async def by_id(self, token_id: str) -> tokens.Token | None:
        """The same for a browser session, which knows only the token's id."""
        return await self._found(f"id:{token_id}", lambda: tokens.find(self._db, token_id))

    async def _found(
        self, key: str, ask: Callable[[], Awaitable[tokens.Token | None]]
    ) -> tokens.Token | None:
        now_s = self._clock()
        found = self._cache.get(key)
        token = found[1] if found is not None and now_s - found[0] < CACHE_S else None
        if token is None:
            token = await ask()
            if token is None:
                return None
            self._remember(key, token, now_s)
        if not _is_live(token):
            return None
        await self._touch(token, now_s)
        return token

    async def create(self, wanted: TokenRequest) -> tuple[tokens.Token, str]:
        """Store a new token and return it with its text, which nobody can recover later."""
        _check_request(wanted)
        text = secret_text.new()
        return await tokens.create(self._db, _new(wanted, text)), text

    async def enrol(self, enrolment: tokens.Token, node: str) -> tuple[tokens.Token, str]:
        """Exchange one use of an enrolment token for the token of a node's agent.

        Raises EnrolmentError for a node that the token may not enrol or when it is used up, and
        ConflictError for one that has a live token which may not be replaced.
        """
        if not patterns.matches(enrolment.nodes, node):
            raise EnrolmentError(
                f"token '{enrolment.name}' enrols nodes named '{enrolment.nodes}', and '{node}' is "
                "none: make another with `hangwatch token create --scope enrol --nodes PATTERN`"
            )
        text = secret_text.new()
        wanted = TokenRequest(name=node, scopes=(Scope.AGENT,), node=node, jobs=enrolment.jobs)
        new = dataclasses.replace(_new(wanted, text), enrolled_by=enrolment.id)
        made = await tokens.enrol(self._db, enrolment, new)
        self._cache.clear()  # of the uses that are left, and of a token that was replaced
        if made is None:
            raise EnrolmentError(
                f"token '{enrolment.name}' has no use left, or is no longer good: make another "
                "with `hangwatch token create --scope enrol --uses N`"
            )
        return made, text

    async def revoke(self, token_id: str, *, with_enrolled: bool = False) -> bool:
        """Return False when no token has this id; with those that agents came by with it."""
        is_revoked = await tokens.revoke(self._db, token_id, with_enrolled=with_enrolled)
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
        return (await self.create(TokenRequest(name="admin", scopes=(Scope.ADMIN,))))[1]

    async def _bootstrap_from(self, configured: str) -> None:
        if not secret_text.MIN_CHARS <= len(configured) <= secret_text.MAX_CHARS:
            raise TokenError(
                f"the bootstrap token has {len(configured)} characters, and must have "
                f"{secret_text.MIN_CHARS} to {secret_text.MAX_CHARS}: make one with "
                "`openssl rand -hex 32` and set HANGWATCH_BOOTSTRAP_TOKEN"
            )
        wanted = TokenRequest(name="bootstrap", scopes=(Scope.ADMIN,))
        await tokens.ensure(self._db, _new(wanted, configured))

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


def _new(wanted: TokenRequest, text: str) -> tokens.NewToken:
    return tokens.NewToken(
        name=wanted.name,
        scopes=tuple(str(scope) for scope in wanted.scopes),
        secret_hash=secret_text.hash_of(text),
        prefix=secret_text.prefix_of(text),
        node=wanted.node,
        expires_at=wanted.expires_at,
        jobs=wanted.jobs,
        nodes=wanted.nodes,
        uses_left=wanted.uses,
        may_replace=wanted.may_replace,
    )


def _check_request(wanted: TokenRequest) -> None:
    """Raise TokenError for a token that would be unsafe, or good for nothing."""
    scopes = set(wanted.scopes)
    unknown = sorted(scopes - {scope.value for scope in Scope})
    if unknown or not scopes:
        names = ", ".join(scope.value for scope in Scope)
        raise TokenError(f"'{', '.join(unknown)}' is no scope: give one or more of {names}")
    if Scope.AGENT in scopes and not wanted.node:
        raise TokenError(
            "an agent's token speaks for one node: name it, as in "
            "`hangwatch token create --scope agent --node NODE`"
        )
    if wanted.expires_at is not None and wanted.expires_at <= datetime.now(UTC):
        raise TokenError("the token would have expired already: give a later time")
    if wanted.jobs and Scope.ADMIN in scopes:
        raise TokenError(
            "an administrator's token cannot be limited to some jobs: leave --jobs out, or use "
            "--role viewer or --role operator"
        )
    _check_enrolment(wanted, scopes)


def _check_enrolment(wanted: TokenRequest, scopes: set[str]) -> None:
    is_enrolment = Scope.ENROL in scopes
    if is_enrolment and scopes != {Scope.ENROL}:
        raise TokenError("a token that enrols nodes has no other scope: make two tokens")
    if is_enrolment and not wanted.nodes:
        raise TokenError(
            "an enrolment token is for some nodes: name them, as in "
            "`hangwatch token create --scope enrol --nodes 'gpu-*'`"
        )
    if not is_enrolment and (wanted.nodes or wanted.uses is not None or wanted.may_replace):
        raise TokenError("--nodes, --uses and --may-replace go with --scope enrol alone")
