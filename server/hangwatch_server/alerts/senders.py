"""Makes a channel ready to send: its secrets are read at that moment, and kept nowhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hangwatch_server.alerts import channels, secret_files
from hangwatch_server.alerts.channels.base import Sender
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.model.alerts import Channel


class Senders:
    """For the worker and the test button."""

    def __init__(self, db: Database, outgoing: Outgoing, secrets_dir: Path) -> None:
        self._db, self._outgoing, self._folder = db, outgoing, secrets_dir

    async def of(self, channel: Channel) -> Sender:
        """Raise SecretError or BadChannelError, fit to show, where the channel cannot send now."""
        stored = await channel_rows.secrets(self._db, channel.id)
        secrets = await asyncio.to_thread(secret_files.read, stored, self._folder)
        channels.check_secrets(channel.kind, secrets)
        return channels.sender(channel.kind, channel.options, secrets, self._outgoing)
