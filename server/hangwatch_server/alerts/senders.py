"""Makes a channel ready to send: its secrets are read at that moment, and kept nowhere."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from pathlib import Path

from hangwatch_server.alerts import channels, masking, secret_files
from hangwatch_server.alerts.channels.base import Accepted, Outcome, Sender
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.model.alerts import Channel, Message


class Senders:
    """For the worker and the test button."""

    def __init__(self, db: Database, outgoing: Outgoing, secrets_dir: Path) -> None:
        self._db, self._outgoing, self._folder = db, outgoing, secrets_dir

    async def of(self, channel: Channel) -> Sender:
        """Raise SecretError or BadChannelError, fit to show, where the channel cannot send now."""
        stored = await channel_rows.secrets(self._db, channel.id)
        secrets = await asyncio.to_thread(secret_files.read, stored, self._folder)
        channels.check_secrets(channel.kind, secrets)
        sender = channels.sender(channel.kind, channel.options, secrets, self._outgoing)
        return _Discreet(sender, tuple(secrets.values()))


@dataclass(frozen=True, slots=True)
class _Discreet:
    """Whatever the receiver repeats of a channel's secrets is in no outcome."""

    sender: Sender
    secrets: tuple[str, ...]

    async def send(self, message: Message, thread: str) -> Outcome:
        outcome = await self.sender.send(message, thread)
        if isinstance(outcome, Accepted):
            return outcome
        return dataclasses.replace(outcome, error=masking.masked(outcome.error, self.secrets))
