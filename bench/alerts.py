"""Many hangs at once, from their rows to the receivers: python bench/alerts.py [--incidents 1000].

A real Postgres, two servers' planning and sending side by side, and one real HTTP receiver for each
channel. Prints how long it took until everybody knew, that each message came once, and what the
database has grown by. The hangs are written first; that is not part of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sqlalchemy import text
from tests.support import outbox as house
from tests.support import postgres
from tests.support.receiver import Receiver

from hangwatch_server.alerts.worker import Pace
from hangwatch_server.db import migrate
from hangwatch_server.db.embedded import EmbeddedPostgres
from hangwatch_server.db.engine import Database

PATIENCE_S = 300.0
PACE = Pace(tick_s=1.0, claim_s=30.0, retry_s=2.0)  # the defaults
SERVERS = 2


@dataclass(frozen=True, slots=True)
class Result:
    first_s: float
    all_s: float
    messages: int
    lost: int
    repeated: int
    hangs_bytes: int
    outbox_bytes: int


def measure(incidents: int, channels: int) -> Result:
    with postgres.data_folder() as folder:
        folder.chmod(0o711)
        embedded = EmbeddedPostgres(folder)
        url = embedded.start()
        try:
            return asyncio.run(_on_database(url, incidents, channels))
        finally:
            embedded.stop()


async def _on_database(url: str, incidents: int, channels: int) -> Result:
    await migrate.upgrade(url)
    db = Database(url)
    await db.open()
    try:
        return await _measure(db, incidents, channels)
    finally:
        await db.close()


async def _measure(db: Database, incidents: int, channels: int) -> Result:
    empty = await _size_bytes(db)
    for number in range(incidents):
        await house.hang(db, f"job{number:09}", f"job-{number}")
    await house.pass_time(db, 60)
    before = await _size_bytes(db)
    with contextlib.ExitStack() as ends:
        receivers = [ends.enter_context(Receiver.started()) for _ in range(channels)]
        for number, receiver in enumerate(receivers):
            await house.channel(db, receiver.url, name=f"channel {number}")
        async with _servers(db):
            first_s, all_s = await _told(db, receivers, incidents)
    heard = Counter(
        request.headers["webhook-id"] for receiver in receivers for request in receiver.requests
    )
    return Result(
        first_s=first_s,
        all_s=all_s,
        messages=len(heard),
        lost=incidents * channels - len(heard),
        repeated=heard.total() - len(heard),
        hangs_bytes=before - empty,
        outbox_bytes=await _size_bytes(db) - before,
    )


@contextlib.asynccontextmanager
async def _servers(db: Database) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(SERVERS):
            await stack.enter_async_context(house.sending(db, PACE))
        yield


async def _told(db: Database, receivers: list[Receiver], incidents: int) -> tuple[float, float]:
    """Seconds from the first look of planning to the first message, and to the last."""
    started_s = time.monotonic()
    planning = [asyncio.create_task(house.planner(db).plan()) for _ in range(SERVERS)]
    first_s = 0.0
    while True:
        heard = [len(receiver.requests) for receiver in receivers]
        now_s = time.monotonic() - started_s
        first_s = first_s or (now_s if any(heard) else 0.0)
        if min(heard) >= incidents or now_s > PATIENCE_S:
            await asyncio.gather(*planning)
            return first_s, now_s
        await asyncio.sleep(0.02)


async def _size_bytes(db: Database) -> int:
    async with db.begin() as connection:
        statement = text("SELECT pg_database_size(current_database())")
        return int((await connection.execute(statement)).scalar_one())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--incidents", type=int, default=1000)
    parser.add_argument("--channels", type=int, default=3)
    options = parser.parse_args()

    found = measure(options.incidents, options.channels)
    print(f"incidents, channels          {options.incidents} x {options.channels}")
    print(f"first message after          {found.first_s:.2f} s")
    print(f"everybody knows after        {found.all_s:.1f} s, {SERVERS} servers")
    print(f"messages, lost, repeated     {found.messages}, {found.lost}, {found.repeated}")
    print(f"database: the hangs          {found.hangs_bytes / 1e6:.1f} MB")
    each = found.outbox_bytes / max(found.messages, 1)
    print(
        f"database: the outbox         {found.outbox_bytes / 1e6:.1f} MB, {each / 1e3:.1f} kB each"
    )
    sys.exit(1 if found.lost or found.repeated else 0)


if __name__ == "__main__":
    main()
