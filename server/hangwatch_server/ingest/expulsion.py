"""Shows out agents whose token was revoked, or has expired, while they were connected."""

from __future__ import annotations

import asyncio

from hangwatch_server import logs
from hangwatch_server.errors import DatabaseError
from hangwatch_server.ingest.hub import Hub
from hangwatch_server.security.authenticator import CACHE_S, Authenticator

EVERY_S = CACHE_S  # as long as other requests with a revoked token may still be answered

_log = logs.get()


async def run(hub: Hub, tokens: Authenticator, every_s: float = EVERY_S) -> None:
    """Look at the tokens of all connected agents, with one query, for as long as the server runs.

    While the database is away everybody stays: its absence says nothing about a token.
    """
    while True:
        await asyncio.sleep(every_s)
        try:
            hub.expel(await tokens.lapsed(hub.tokens()))
        except DatabaseError as error:
            _log.info("tokens_not_checked", error=str(error))
