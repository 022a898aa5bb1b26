"""Keys that callers give to what must be done once, and the answers they got: claimed, completed,
released. A key belongs to one caller; the row is the claim, so two servers cannot both have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import idempotency_keys as keys

# Longer than any of these calls lasts. A claim that is older was left by a server that died in the
# midst: whether it was done is not known, and doing it (again) is the lesser evil.
ABANDONED_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Who asks, under which key, and a hash of what is asked."""

    caller: str
    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is known of a key that is taken."""

    fingerprint: str
    status: int | None  # None while it is being done
    body: bytes | None  # None where the answer is not kept
    location: str | None


async def claim(db: Database, key: Key) -> Kept | None:
    """Take the key for this request, None; or what is kept of the request that has it."""
    values = {
        "fingerprint": key.fingerprint,
        "claimed_at": func.clock_timestamp(),
        "status": None,
        "body": None,
        "location": None,
    }
    new = insert(keys).values(caller=key.caller, key=key.key, **values)
    abandoned = func.clock_timestamp() - timedelta(seconds=ABANDONED_S)
    statement = new.on_conflict_do_update(
        index_elements=[keys.c.caller, keys.c.key],
        set_=values,
        where=and_(keys.c.status.is_(None), keys.c.claimed_at < abandoned),
    ).returning(keys.c.key)
    async with db.begin() as connection:
        if (await connection.execute(statement)).first() is not None:
            return None
        row = (await connection.execute(select(keys).where(_is(key)))).first()
    if row is None:  # released in between: the caller asks again
        return Kept(fingerprint=key.fingerprint, status=None, body=None, location=None)
    return Kept(
        fingerprint=row.fingerprint, status=row.status, body=row.body, location=row.location
    )


async def complete(
    db: Database, key: Key, *, status: int, body: bytes | None, location: str | None
) -> None:
    """Keep the answer for whoever asks the same again."""
    statement = (
        update(keys)
        .where(_is(key), keys.c.fingerprint == key.fingerprint)
        .values(status=status, body=body, location=location)
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def release(db: Database, key: Key) -> None:
    """Forget a claim whose request came to nothing."""
    statement = delete(keys).where(
        _is(key), keys.c.fingerprint == key.fingerprint, keys.c.status.is_(None)
    )
    async with db.begin() as connection:
        await connection.execute(statement)


def _is(key: Key) -> ColumnElement[bool]:
    return and_(keys.c.caller == key.caller, keys.c.key == key.key)
