"""The ways to reach people and machines: each kind of channel is one module here."""

from __future__ import annotations

from collections.abc import Mapping

from hangwatch_server.alerts.channels import (
    alertmanager,
    apprise,
    fields,
    pagerduty,
    slack_bot,
    slack_webhook,
    webhook,
)
from hangwatch_server.alerts.channels.base import Kind, Sender
from hangwatch_server.alerts.channels.fields import BadChannelError, Field
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import ChannelKind

KINDS: Mapping[ChannelKind, Kind] = {
    ChannelKind.SLACK_BOT: slack_bot.KIND,
    ChannelKind.SLACK_WEBHOOK: slack_webhook.KIND,
    ChannelKind.WEBHOOK: webhook.KIND,
    ChannelKind.PAGERDUTY: pagerduty.KIND,
    ChannelKind.ALERTMANAGER: alertmanager.KIND,
    ChannelKind.APPRISE: apprise.KIND,
}

__all__ = ["KINDS", "BadChannelError", "Field", "Kind", "check", "check_secrets", "sender"]


def check(kind: ChannelKind, options: Mapping[str, str], secret_names: frozenset[str]) -> None:
    """Raise BadChannelError unless the channel has all that its kind needs, and nothing else."""
    fields.check(KINDS[kind].fields, options, secret_names)


def check_secrets(kind: ChannelKind, secrets: Mapping[str, str]) -> None:
    """Raise BadChannelError for a secret that cannot be what it should; never says what it is."""
    for field in KINDS[kind].fields:
        if field.is_secret and field.name in secrets:
            fields.check_value(field, secrets[field.name])


def sender(
    kind: ChannelKind, options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing
) -> Sender:
    """A channel ready to send; `secrets` are read, not references to files."""
    return KINDS[kind].make(options, secrets, outgoing)
