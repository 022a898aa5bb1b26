"""Hangs, channels and an outbox in a test's own database; time passes by moving what is stored."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import text
from tests.support import alerts as support
from tests.support import verdicts as make

from hangwatch_server.alerts.planner import Planner
from hangwatch_server.alerts.planning import Rules
from hangwatch_server.alerts.senders import Senders
from hangwatch_server.alerts.worker import Pace, Worker
from hangwatch_server.db import channels, incidents, jobs, leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.model import Incident
from hangwatch_server.model.alerts import Channel, ChannelKind, Topic

# The example key of the Standard Webhooks specification, not a secret.
SIGNING_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLwSw"
OF_INCIDENTS = (Topic.OPENED, Topic.REMINDER, Topic.ACKNOWLEDGED, Topic.RESOLVED)
BASE_URL = "https://hangwatch.example"
# Fast enough for a test to see retries and claims that ran out.
PACE = Pace(tick_s=0.05, claim_s=5.0, retry_s=0.02)


async def until(
    is_met: Callable[[], object | Awaitable[object]], what: str, timeout_s: float = 30.0
) -> None:
    """Wait until the condition is true; fail with `what` after the timeout."""
    end_s = time.monotonic() + timeout_s
    while True:
        found = is_met()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() < end_s, f"not within {timeout_s:.0f} s: {what}"
        await asyncio.sleep(0.01)


async def lease_of(db: Database, job: str) -> Lease:
    lease = await leases.claim(db, job, "server-a", 60)
    assert lease is not None
    return lease


async def suspicion(db: Database, job: str = "b3a1c2d4e5f6", name: str = "gpt-7b") -> Incident:
    """An incident that is still hidden."""
    await jobs.save(db, replace(make.job(job), name=name), f"run of {job}", {})
    verdict = replace(make.verdict(job), name=name)
    return await incidents.open_incident(db, await lease_of(db, job), verdict)


async def hang(db: Database, job: str = "b3a1c2d4e5f6", name: str = "gpt-7b") -> Incident:
    """A confirmed incident, which people are not told of yet."""
    found = await suspicion(db, job, name)
    return await incidents.confirm(db, await lease_of(db, job), found.id, found.verdict)


async def settled_hang(db: Database, job: str = "b3a1c2d4e5f6", name: str = "gpt-7b") -> Incident:
    """One that stood for a minute."""
    found = await hang(db, job, name)
    await pass_time(db, 60)
    return found


async def pass_time(db: Database, seconds: float) -> None:
    """All that is stored of incidents and deliveries is so much older."""
    columns = {
        "incidents": ("opened_at", "confirmed_at", "ended_at", "acknowledged_at", "snoozed_until"),
        "deliveries": ("created_at", "sent_at", "next_at", "claimed_until"),
        "channels": ("created_at",),
        "silences": ("created_at", "starts_at", "ends_at"),
        "blind_spells": ("began_at", "ended_at"),
    }
    async with db.begin() as connection:
        for table, names in columns.items():
            changes = ", ".join(f"{name} = {name} - make_interval(secs => :s)" for name in names)
            await connection.execute(text(f"UPDATE {table} SET {changes}"), {"s": seconds})  # noqa: S608


async def channel(
    db: Database,
    url: str,
    *,
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    **changes: object,
) -> Channel:
    """A signed webhook that asks for all about incidents, or another kind with its own secrets."""
    wanted = Channel(
        id="",
        name="hooks",
        kind=ChannelKind.WEBHOOK,
        options={},
        secret_names=(),
        topics=OF_INCIDENTS,
        matchers=(),
        after_s=0.0,
        remind_s=0.0,
        is_enabled=True,
        disabled_reason="",
        created_at=support.OPENED,
        created_by="ops",
        target="127.0.0.1",
    )
    signed = {"url": {"value": url}, "signing_key": {"value": SIGNING_KEY}}
    return await channels.create(db, replace(wanted, **changes), secrets or signed)  # type: ignore[arg-type]


def planner(db: Database) -> Planner:
    return Planner(db, Rules(settle_s=10.0), BASE_URL)


@dataclass
class Sending:
    """A worker at work."""

    worker: Worker
    task: asyncio.Task[None]

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


@contextlib.asynccontextmanager
async def sending(
    db: Database,
    pace: Pace = PACE,
    services: frozenset[str] = frozenset(),
    note: Callable[[str], None] | None = None,
) -> AsyncIterator[Sending]:
    """A worker that may reach this machine, until the block ends."""
    async with support.outgoing(services=services) as outgoing:
        worker = Worker(db, Senders(db, outgoing, Path("/nowhere")), pace, note=note)
        at_work = Sending(worker, asyncio.create_task(worker.run()))
        try:
            yield at_work
        finally:
            await at_work.stop()
