"""Sends what is in the outbox: claims, sends outside any transaction, writes what came of it.

A channel has a lane of its own, so that one slow receiver delays no other; a lane takes a few
messages at a time. The claims of a server that is killed run out; one that stops gives them up.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hangwatch_server import logs, metrics
from hangwatch_server.alerts import retries
from hangwatch_server.alerts.channels import KINDS
from hangwatch_server.alerts.channels.base import Accepted, Outcome, Refused, TryAgain
from hangwatch_server.alerts.senders import Senders
from hangwatch_server.db import audit, claims, deliveries
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db.claims import Claimed, Tried
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model.alerts import Channel, DeliveryState

LANE = 8  # messages that one receiver is sent at the same time, at most
BATCH = 4  # that are claimed for it at once, when so much of its lane is free
MOST = 200  # over all lanes
CONNECTIONS = 4  # of the database's; detection needs the others
BY = "hangwatch"
# Of the time that a claim gives; the rest is for writing what came of it.
SEND_SHARE = 0.6
_ORPHAN = "not sent: the message that began this was given up"
_log = logs.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """In seconds: between two looks, for one claim, until the first retry at the latest."""

    tick_s: float
    claim_s: float
    retry_s: float
    finish_s: float = 3.0  # that a stop leaves to what is under way


class Worker:
    """One per server; any number of them share an outbox."""

    def __init__(
        self,
        db: Database,
        senders: Senders,
        pace: Pace,
        *,
        chance: Callable[[], float] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """`note` is told the incident of each message of which something came."""
        self._db, self._senders, self._pace = db, senders, pace
        self._chance = chance or random.Random().random
        self._note = note
        self._connections = asyncio.Semaphore(CONNECTIONS)
        self._woken = asyncio.Event()
        self._lanes: Counter[str] = Counter()
        self._sending: set[asyncio.Task[None]] = set()  # awaited by `_finish`
        self._holder = secrets.token_hex(4)
        self._number = 0

    def wake(self) -> None:
        """There is something new to send."""
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled; then what is under way has a moment to end, and claims are given up."""
        try:
            while True:
                self._woken.clear()
                await self._claim_some()
                try:
                    async with asyncio.timeout(self._pace.tick_s):
                        await self._woken.wait()
                except TimeoutError:
                    continue
        finally:
            await self._finish()

    async def _finish(self) -> None:
        """A message that was taken and not noted as sent would go out twice."""
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=self._pace.finish_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._release()

    async def _claim_some(self) -> None:
        if self._lanes.total() >= MOST:
            return
        full = [channel for channel, count in self._lanes.items() if count > LANE - BATCH]
        self._number += 1
        claim = f"{self._holder}:{self._number}"
        claimed_s = time.monotonic()
        try:
            found = await claims.claim(
                self._db,
                claim,
                for_s=self._pace.claim_s,
                most_per_channel=BATCH,
                without=full,
            )
        except HangwatchError as error:
            metrics.database_failures.inc()
            _log.warning("outbox_not_read", error=str(error))
            return
        for one in found:
            self._lanes[one.channel] += 1
            task = asyncio.create_task(self._deliver(one, claimed_s))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _deliver(self, one: Claimed, claimed_s: float) -> None:
        try:
            await self._send_and_settle(one, claimed_s)
        except HangwatchError as error:
            # The claim runs out, and the message is sent again under the same id.
            metrics.database_failures.inc()
            _log.warning("delivery_not_settled", delivery=one.id, error=str(error))
        except Exception:
            # The boundary of one message: what is wrong with it must not stop the others.
            metrics.watch_failures.inc()
            _log.exception("delivery_failed", delivery=one.id)
        finally:
            self._lanes[one.channel] -= 1
            if self._lanes[one.channel] <= LANE - BATCH:
                self._woken.set()
            self._lanes += Counter()  # drops those at zero

    async def _send_and_settle(self, one: Claimed, claimed_s: float) -> None:
        if one.is_orphan:
            async with self._connections:
                await claims.settle_failed(self._db, one, None, _ORPHAN)
            return
        async with self._connections:
            channel = await channel_rows.find(self._db, one.channel)
        if channel is None:
            return  # deleted just now, and the delivery with it
        left_s = await self._time_for(channel, one, claimed_s)
        if left_s is None:
            return
        started_s = time.monotonic()
        outcome = await self._send(channel, one, left_s)
        took_s = time.monotonic() - started_s
        async with self._connections:
            is_ours = await self._settle(channel, one, outcome, took_s)
        self._count(channel, one, outcome, is_ours=is_ours)
        if self._note is not None and one.message.incident is not None:
            self._note(one.message.incident.id)

    async def _time_for(self, channel: Channel, one: Claimed, claimed_s: float) -> float | None:
        """Seconds that the try may take; None where another server has it by now."""
        takes_s = KINDS[channel.kind].takes_s
        left_s = claimed_s + self._pace.claim_s * SEND_SHARE - time.monotonic()
        if takes_s <= left_s:
            return left_s
        is_ours = await claims.prolong(self._db, one, takes_s / SEND_SHARE)
        return takes_s if is_ours else None

    async def _send(self, channel: Channel, one: Claimed, within_s: float) -> Outcome:
        try:
            async with asyncio.timeout(within_s):
                async with self._connections:
                    sender = await self._senders.of(channel)
                return await sender.send(one.message, one.thread)
        except TimeoutError:
            return TryAgain(error=f"no answer within {within_s:.0f} s")
        except HangwatchError as error:
            # A secret that cannot be read, an address that may not be asked: somebody can mend it.
            return TryAgain(error=str(error))

    async def _settle(
        self, channel: Channel, one: Claimed, outcome: Outcome, took_s: float
    ) -> bool:
        match outcome:
            case Accepted():
                tried = Tried(status=outcome.status, error="", took_s=took_s)
                return await claims.settle_sent(self._db, one, tried, outcome.thread)
            case Refused():
                tried = Tried(status=outcome.status, error=outcome.error, took_s=took_s)
                is_ours = await claims.settle_failed(self._db, one, tried, outcome.error)
                if is_ours and outcome.is_gone:
                    await self._disable(channel, outcome.error)
                return is_ours
            case TryAgain():
                tried = Tried(status=outcome.status, error=outcome.error, took_s=took_s)
                return await self._put_off(one, outcome, tried)

    async def _put_off(self, one: Claimed, outcome: TryAgain, tried: Tried) -> bool:
        delay_s = retries.delay_s(
            one.tries + 1, self._pace.retry_s, self._chance(), outcome.after_s
        )
        if delay_s is None:
            reason = f"given up after {one.tries + 1} tries: {outcome.error}"
            return await claims.settle_failed(self._db, one, tried, reason)
        return await claims.settle_put_off(self._db, one, tried, delay_s)

    async def _disable(self, channel: Channel, reason: str) -> None:
        """The receiver wants nothing from us any more: who runs Hangwatch is told by the page."""
        if await channel_rows.disable(self._db, channel.id, reason):
            await deliveries.give_up(self._db, channel.id, f"the channel was disabled: {reason}")
            await audit.record(self._db, BY, "channel.disable", f"channel:{channel.id}", reason)
            _log.warning("channel_disabled", channel=channel.id, reason=reason)

    def _count(self, channel: Channel, one: Claimed, outcome: Outcome, *, is_ours: bool) -> None:
        word = _word(outcome) if is_ours else "claim_lost"
        metrics.alerts_sent.labels(channel.kind, word).inc()
        error = "" if isinstance(outcome, Accepted) else outcome.error
        _log.info(
            "alert_tried",
            delivery=one.id,
            channel=channel.id,
            topic=one.topic,
            about=one.message.about,
            outcome=word,
            **({"error": error} if error else {}),
        )

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(self._pace.claim_s):
                await claims.release(self._db, self._holder)
        except (HangwatchError, TimeoutError) as error:
            _log.warning("claims_not_released", error=str(error) or "no answer in time")


def _word(outcome: Outcome) -> str:
    match outcome:
        case Accepted():
            return DeliveryState.SENT
        case Refused():
            return DeliveryState.FAILED
        case TryAgain():
            return "tried"
