"""What administrators do with channels: make, change, delete and try them; each is audited.

The pages and the API do the same by these functions. A secret comes in here and is never told
again, neither in an answer nor in the audit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hangwatch_server.alerts import channels, messages, secret_files
from hangwatch_server.alerts.channels import BadChannelError
from hangwatch_server.alerts.channels.base import Accepted
from hangwatch_server.alerts.secret_files import SecretError
from hangwatch_server.alerts.senders import Senders
from hangwatch_server.db import audit, deliveries
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db.channels import StoredSecrets
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import ConflictError, NotFoundError
from hangwatch_server.model.alerts import Channel, ChannelKind, Matcher, Topic

LONGEST_S = 30 * 86400.0
LEAST_REMIND_S = 60.0
# What a channel is told unless it says otherwise: hangs, and that nobody watches.
USUAL_TOPICS = (
    Topic.OPENED,
    Topic.REMINDER,
    Topic.ACKNOWLEDGED,
    Topic.RESOLVED,
    Topic.BLIND,
    Topic.SIGHTED,
)
TOPICS = (*USUAL_TOPICS, Topic.SLOW)
Options = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A channel as somebody wants it; secrets that are not given stay as they are."""

    name: str
    kind: ChannelKind
    options: Options
    secrets: Mapping[str, Mapping[str, str] | None]  # None takes one away
    topics: tuple[Topic, ...] = USUAL_TOPICS
    matchers: tuple[Matcher, ...] = ()
    after_s: float = 0.0
    remind_s: float = 0.0
    is_enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How the test message went."""

    is_accepted: bool
    status: int | None  # of HTTP, where an answer came
    error: str  # "" when it was accepted
    took_s: float


async def create(db: Database, folder: Path, wish: Wish, by: str) -> Channel:
    """BadChannelError, SecretError or ConflictError say why a channel cannot be as wished."""
    if await channel_rows.count(db) >= channel_rows.MAX_CHANNELS:
        raise ConflictError(
            f"there are {channel_rows.MAX_CHANNELS} channels already, and no more are kept: "
            "delete one that nobody needs"
        )
    stored = _merged({}, wish.secrets)
    checked = await _checked(_new(wish, by), stored, folder)
    made = await channel_rows.create(db, checked, stored)
    await _note(db, by, "channel.create", made)
    return made


async def change(db: Database, folder: Path, channel_id: str, wish: Wish, by: str) -> Channel:
    """Its kind stays. Enabled, it is told at once of what still stands; disabled, of nothing more.

    Enabling it forgets why it was disabled.
    """
    before = await find(db, channel_id)
    stored = _merged(await channel_rows.secrets(db, channel_id), wish.secrets)
    wanted = replace(
        before,
        name=wish.name,
        options={name: value for name, value in wish.options.items() if value},
        topics=wish.topics,
        matchers=wish.matchers,
        after_s=wish.after_s,
        remind_s=wish.remind_s,
        is_enabled=wish.is_enabled,
        disabled_reason="" if wish.is_enabled else before.disabled_reason or f"by {by}",
    )
    changed = await channel_rows.change(db, await _checked(wanted, stored, folder), stored)
    if changed.is_enabled:
        await deliveries.resume(db, channel_id)
    else:
        reason = f"the channel was disabled: {changed.disabled_reason}"
        await deliveries.give_up(db, channel_id, reason)
    await _note(db, by, "channel.change", changed)
    return changed


async def delete(db: Database, channel_id: str, by: str) -> None:
    """With its delivery log."""
    channel = await find(db, channel_id)
    await channel_rows.delete(db, channel_id)
    await _note(db, by, "channel.delete", channel)


async def test(db: Database, senders: Senders, channel: Channel, url: str, by: str) -> Trial:
    """Send one message now, on no record but the audit's, and say how it went."""
    began_s = time.monotonic()
    message = messages.of_test(channel, url, datetime.now(UTC))
    try:
        outcome = await (await senders.of(channel)).send(message, "")
    except (SecretError, BadChannelError) as error:
        trial = Trial(is_accepted=False, status=None, error=str(error), took_s=0.0)
    else:
        trial = Trial(
            is_accepted=isinstance(outcome, Accepted),
            status=outcome.status,
            error="" if isinstance(outcome, Accepted) else outcome.error,
            took_s=round(time.monotonic() - began_s, 3),
        )
    detail = "accepted" if trial.is_accepted else trial.error
    await audit.record(db, by, "channel.test", f"channel:{channel.id}", f"{channel.name}: {detail}")
    return trial


async def find(db: Database, channel_id: str) -> Channel:
    found = await channel_rows.find(db, channel_id)
    if found is None:
        raise NotFoundError(
            f"channel '{channel_id[:40]}' is not known: list them with GET /api/v1/channels"
        )
    return found


async def _checked(channel: Channel, stored: StoredSecrets, folder: Path) -> Channel:
    """The channel with its target, once all that it needs is there and can be right."""
    for name, entry in stored.items():
        if "file" in entry and not secret_files.is_file_name(entry["file"]):
            raise BadChannelError(
                f"the file of {name} is a plain name in {folder}: letters, digits, . _ and -"
            )
    if 0 < channel.remind_s < LEAST_REMIND_S:
        raise BadChannelError(f"reminders come every {LEAST_REMIND_S:.0f} s at most, or 0 for none")
    if not channel.topics:
        raise BadChannelError("a channel without topics would never be told anything")
    channels.check(channel.kind, channel.options, frozenset(stored))
    secrets = await asyncio.to_thread(secret_files.read, stored, folder)
    channels.check_secrets(channel.kind, secrets)
    return replace(channel, target=channels.KINDS[channel.kind].target(channel.options, secrets))


def _new(wish: Wish, by: str) -> Channel:
    return Channel(
        id="",
        name=wish.name,
        kind=wish.kind,
        options={name: value for name, value in wish.options.items() if value},
        secret_names=(),
        topics=wish.topics,
        matchers=wish.matchers,
        after_s=wish.after_s,
        remind_s=wish.remind_s,
        is_enabled=wish.is_enabled,
        disabled_reason="" if wish.is_enabled else f"by {by}",
        created_at=datetime.now(UTC),
        created_by=by,
    )


def _merged(
    before: StoredSecrets, given: Mapping[str, Mapping[str, str] | None]
) -> dict[str, Mapping[str, str]]:
    kept = {name: entry for name, entry in before.items() if name not in given}
    return kept | {name: entry for name, entry in given.items() if entry is not None}


async def _note(db: Database, by: str, action: str, channel: Channel) -> None:
    detail = f"{channel.name}: {channel.kind} {channel.target}".rstrip()
    await audit.record(db, by, action, f"channel:{channel.id}", detail)
