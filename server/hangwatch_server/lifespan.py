"""Starts the parts of a server in order, and stops them in reverse. It makes no decisions."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from hangwatch_agent import wire
from hangwatch_server import logs, quotas, replica, security
from hangwatch_server.actions.hook import Hook
from hangwatch_server.alerts.guard import Guard, read_allowed
from hangwatch_server.alerts.monitor import Senses
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.alerts.senders import Senders
from hangwatch_server.alerts.service import Alerts
from hangwatch_server.background import Background
from hangwatch_server.captures.service import Captures
from hangwatch_server.clock import Clock, SystemClock
from hangwatch_server.db import migrate
from hangwatch_server.db.embedded import EmbeddedPostgres
from hangwatch_server.db.engine import Database
from hangwatch_server.detect import DetectSettings
from hangwatch_server.incidents.keeper import Keeper
from hangwatch_server.ingest import expulsion
from hangwatch_server.ingest.goodbye import Leaving
from hangwatch_server.ingest.hub import Hub
from hangwatch_server.ingest.pace import Pace
from hangwatch_server.ingest.routing import Router
from hangwatch_server.model import Link
from hangwatch_server.replica import Replica
from hangwatch_server.security import Authenticator
from hangwatch_server.services import Services
from hangwatch_server.settings import ServerSettings
from hangwatch_server.watch.following import Following
from hangwatch_server.watch.leases import Leases
from hangwatch_server.watch.ledger import Ledger
from hangwatch_server.watch.loop import Loop
from hangwatch_server.watch.samples import Samples
from hangwatch_server.watch.view import Watch

# Of the silence after which an agent is late: the longest interval between two of its heartbeats.
LONGEST_SHARE = 0.6
# Whoever can change the settings may name any address in them.
ANYWHERE = "0.0.0.0/0, ::/0"

_log = logs.get()


@asynccontextmanager
async def running(settings: ServerSettings, clock: Clock | None = None) -> AsyncIterator[Services]:
    """All services of one server: database first, detection last; stopped in reverse.

    Raises DataFolderError or DatabaseError, fit to show, when there is no database to work with.
    """
    async with AsyncExitStack() as stack:
        outgoing = _outgoing(settings)
        stack.push_async_callback(outgoing.close)
        trusted = Outgoing(Guard(read_allowed(ANYWHERE)), settings.outgoing_proxy)
        stack.push_async_callback(trusted.close)
        db = await _database(settings, stack)
        clock = clock or SystemClock()
        here = replica.of(settings, clock, db)
        services, loop, following = _build(settings, clock, db, here, outgoing, trusted)
        stack.push_async_callback(_stop, services, here)
        services.background.start("presence", here.presence.run)
        if here.service is not None:
            services.background.start("relay", here.service.run)
        services.background.start("following", lambda: following.run(loop.show))
        services.background.start("watch", loop.run)
        services.background.start("captures", services.captures.run)
        services.background.start("tokens", lambda: expulsion.run(services.hub, services.tokens))
        services.background.start("pace", _pace(settings, services.hub).run)
        hook = Hook(db, services.bus, services.watch, settings)
        if hook.is_on:
            services.background.start("actions", hook.run)
        services.alerts.start(services.background)
        _log.info("server_started", database="given" if settings.database_url else "embedded")
        yield services


def detect_settings(settings: ServerSettings) -> DetectSettings:
    """The limits of detection out of all settings: same names, same units."""
    names = [item.name for item in dataclasses.fields(DetectSettings)]
    return DetectSettings(**{name: getattr(settings, name) for name in names})


def _outgoing(settings: ServerSettings) -> Outgoing:
    guard = Guard(read_allowed(settings.outgoing_allow))
    schemes = settings.apprise_schemes.replace(",", " ").lower().split()
    return Outgoing(guard, settings.outgoing_proxy, services=frozenset(schemes))


async def _database(settings: ServerSettings, stack: AsyncExitStack) -> Database:
    url = settings.database_url
    if not url:
        embedded = EmbeddedPostgres(settings.data_dir)
        url = await asyncio.to_thread(embedded.start)
        stack.push_async_callback(asyncio.to_thread, embedded.stop)
    await migrate.upgrade(url)
    db = Database(url)
    await db.open()
    stack.push_async_callback(db.close)
    return db


def _build(
    settings: ServerSettings,
    clock: Clock,
    db: Database,
    here: Replica,
    outgoing: Outgoing,
    trusted: Outgoing,
) -> tuple[Services, Loop, Following]:
    board, bus, sink = here.board, here.bus, _LateSink()
    captures = Captures(
        db=db,
        board=board,
        router=Router(here.hub, here.relay),
        relay=here.relay,
        bus=bus,
        clock=clock,
        sink=sink,
        deadline_s=settings.capture_deadline_s,
    )
    here.deliver_parts_to(captures)
    leases = Leases(db, here.name, settings.lease_ttl_s)
    following = Following(db, bus, captures)
    loop = _loop(settings, clock, db, here, captures, leases, following)
    sink.loop = loop
    watch = Watch(loop=loop, db=db, board=board, bus=bus, captures=captures, clock=clock)
    background, senders = Background(), Senders(db, outgoing, settings.secrets_dir)
    alerts = Alerts(
        db=db,
        senders=senders,
        trusted=trusted,
        settings=settings,
        clock=clock,
        senses=_senses(here, clock, background),
        bus=bus,
    )
    services = Services(
        settings=settings,
        clock=clock,
        db=db,
        board=board,
        bus=bus,
        hub=here.hub,
        relay=here.relay,
        presence=here.presence,
        leaving=Leaving(settings, here.hub, here.relay, leases),
        captures=captures,
        watch=watch,
        tokens=Authenticator(db),
        guard=security.Guard(settings.failures_per_minute, settings.captures_per_minute),
        background=background,
        outgoing=outgoing,
        senders=senders,
        alerts=alerts,
        quotas=quotas.of(settings),
    )
    return services, loop, following


def _loop(
    settings: ServerSettings,
    clock: Clock,
    db: Database,
    here: Replica,
    captures: Captures,
    leases: Leases,
    following: Following,
) -> Loop:
    board, bus = here.board, here.bus
    return Loop(
        settings=settings,
        limits=detect_settings(settings),
        clock=clock,
        db=db,
        board=board,
        bus=bus,
        captures=captures,
        samples=Samples(),
        ledger=Ledger(db, board, bus, captures, Keeper(db), leases, following, clock),
        leases=leases,
    )


def _senses(here: Replica, clock: Clock, background: Background) -> Senses:
    def agents() -> int:
        links = here.board.links(clock.monotonic_s())
        return sum(link is not Link.LOST for link in links.values())

    return Senses(
        server=here.name,
        living=here.presence.living,
        agents=agents,
        failing=background.failing,
    )


def _pace(settings: ServerSettings, hub: Hub) -> Pace:
    return Pace(hub, settings.interval_s, settings.agent_late_s * LONGEST_SHARE)


class _LateSink:
    """Breaks the circle of captures, which feed the loop, and the loop, which asks for captures."""

    loop: Loop | None = None

    def part_arrived(
        self, job: str, node: str, part: wire.CapturePart, now_s: float, *, is_kept: bool = True
    ) -> None:
        if self.loop is not None:
            self.loop.part_arrived(job, node, part, now_s, is_kept=is_kept)


async def _stop(services: Services, here: Replica) -> None:
    services.bus.close()
    await services.hub.close_all("the server is stopping")
    await services.background.stop()
    if here.service is not None:
        await here.service.stop()
