"""The line to Redis: publish, listen, count listeners. Every fault of it is a RelayError.

Nothing is repeated here: what was not published is out of date by the time it could be.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from hangwatch_server.errors import HangwatchError

TIMEOUT_S = 3.0
_FAULTS = (RedisError, OSError, TimeoutError)


class RelayError(HangwatchError):
    """Redis cannot be reached, did not answer in time, or refused."""


class Ears:
    """A connection that listens."""

    def __init__(self, pubsub: Any, prefix: str) -> None:  # Any: redis-py leaves it untyped
        self._pubsub, self._prefix = pubsub, prefix

    async def listen_to(self, channel: str) -> None:
        try:
            await self._pubsub.subscribe(self._prefix + channel)
        except _FAULTS as error:
            raise _told(error) from error

    async def ignore(self, channel: str) -> None:
        try:
            await self._pubsub.unsubscribe(self._prefix + channel)
        except _FAULTS as error:
            raise _told(error) from error

    async def next(self, timeout_s: float) -> tuple[str, bytes] | None:
        """Channel and data of the next message; None when none came in time."""
        try:
            message = await self._pubsub.get_message(
                ignore_subscribe_messages=True, timeout=timeout_s
            )
        except _FAULTS as error:
            raise _told(error) from error
        if message is None:
            return None
        return message["channel"].decode().removeprefix(self._prefix), message["data"]


class Line:
    """`prefix` keeps deployments apart that share one Redis."""

    def __init__(self, url: str, prefix: str) -> None:
        self._prefix = f"{prefix}:"
        try:
            self._redis = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                **({} if url.startswith("unix:") else {"socket_keepalive": True}),
                retry=Retry(NoBackoff(), 0),
                max_connections=16,
            )
        except ValueError as error:
            raise RelayError(
                f"the address of Redis cannot be read ({error}): "
                "write redis://:PASSWORD@HOST:6379, rediss:// for TLS, or unix:///PATH"
            ) from error

    async def publish(self, sent: Sequence[tuple[str, bytes]]) -> list[int]:
        """How many heard each message, of (channel, data), sent in one go."""
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for channel, data in sent:
                    pipeline.publish(self._prefix + channel, data)
                return [int(count) for count in await pipeline.execute()]
        except _FAULTS as error:
            raise _told(error) from error

    async def listeners(self, channel: str) -> int:
        """How many connections listen to a channel now."""
        name = self._prefix + channel
        try:
            counts = await self._redis.pubsub_numsub(name)
        except _FAULTS as error:
            raise _told(error) from error
        return int(counts[0][1])

    @asynccontextmanager
    async def listening(self, channels: Iterable[str]) -> AsyncIterator[Ears]:
        """A connection that listens to these, and to more as they are added."""
        pubsub = self._redis.pubsub()
        ears = Ears(pubsub, self._prefix)
        try:
            for channel in channels:
                await ears.listen_to(channel)
            yield ears
        finally:
            with contextlib.suppress(*_FAULTS):
                await pubsub.aclose()  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        with contextlib.suppress(*_FAULTS):
            await self._redis.aclose()


def _told(error: BaseException) -> RelayError:
    return RelayError(str(error) or f"no answer within {TIMEOUT_S:.0f} s")
