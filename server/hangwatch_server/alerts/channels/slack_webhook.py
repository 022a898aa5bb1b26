"""Slack by an incoming webhook: each message is a new one, since it cannot be edited later."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hangwatch_server.alerts.channels import answers, slack_blocks, slack_text
from hangwatch_server.alerts.channels.base import Kind, Outcome, Refused, TryAgain
from hangwatch_server.alerts.channels.fields import Field, host_of, is_address
from hangwatch_server.alerts.outgoing import Answer, Outgoing
from hangwatch_server.model.alerts import Message

MENTION = Field(
    name="mention",
    label="Mention",
    help="who is called when a hang opens or still stands: here, channel, member or group ids",
    example="here",
    check=slack_text.are_mentions,
)
FIELDS = (
    Field(
        name="url",
        label="Webhook address",
        help="from the app's page Incoming Webhooks; who has it can post, so it is a secret",
        example="https://hooks.slack.com/services/T…/B…/…",
        is_secret=True,
        is_required=True,
        check=is_address,
    ),
    MENTION,
)
# https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks#handling_errors
_WORDS = {
    "no_service": "the webhook was removed in Slack: make another and change the channel",
    "no_active_hooks": "the webhook is disabled in Slack: make another and change the channel",
    "no_team": "the Slack workspace is gone",
    "channel_not_found": "the Slack channel of the webhook is gone: make another webhook",
    "channel_is_archived": "the Slack channel of the webhook is archived",
    "action_prohibited": "an administrator of Slack forbids this webhook to post",
    "posting_to_general_channel_denied": "the workspace lets nobody post to its general channel",
    "invalid_token": "the webhook's address is not whole, or was changed in Slack",
    "team_disabled": "the Slack workspace is disabled",
}
_UNREADABLE = ("invalid_blocks", "invalid_payload", "invalid_attachments", "msg_too_long")


class SlackWebhook:
    """Posts each message once."""

    def __init__(self, url: str, mention: str, outgoing: Outgoing) -> None:
        self._url, self._mention, self._outgoing = url, mention, outgoing

    async def send(self, message: Message, thread: str) -> Outcome:
        answer = await self._post(slack_blocks.whole(message, self._mention))
        if isinstance(answer, Answer) and answer.text.strip() in _UNREADABLE:
            # An alert without its looks is better than none.
            answer = await self._post(slack_blocks.plain(message, self._mention))
        if isinstance(answer, TryAgain):
            return answer
        told = _WORDS.get(answer.text.strip())
        if told is None or answer.is_accepted:
            return answers.outcome(answer)
        if answer.status == 410:
            return Refused(error=told, status=410, is_gone=True)
        return TryAgain(error=told, status=answer.status, after_s=answers.after_s(answer))

    async def _post(self, body: slack_blocks.Json) -> Answer | TryAgain:
        sent = json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        return await answers.of_request(self._outgoing.post(self._url, sent, headers))


def _make(
    options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing
) -> SlackWebhook:
    return SlackWebhook(secrets["url"], slack_text.mentions(options.get("mention", "")), outgoing)


KIND = Kind(
    label="Slack, by webhook",
    about="Posts to one Slack channel. The quickest to set up; each change is a new message.",
    fields=FIELDS,
    make=_make,
    target=lambda options, secrets: host_of(secrets.get("url", "")),
)
