"""Slack by a bot token: one message per incident, edited as it goes on, with its thread below.

The first message is posted; each later one changes the first, so that the channel shows how things
stand, and adds a reply to its thread, so that nothing is lost and nobody is called twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hangwatch_server.alerts.channels import answers, slack_blocks, slack_text
from hangwatch_server.alerts.channels.base import Accepted, Kind, Outcome, Refused, TryAgain
from hangwatch_server.alerts.channels.fields import BadChannelError, Field, is_address
from hangwatch_server.alerts.channels.slack_webhook import MENTION
from hangwatch_server.alerts.outgoing import Answer, Outgoing
from hangwatch_server.model.alerts import Message, Topic

API = "https://slack.com/api"


def _is_bot_token(value: str) -> None:
    if not value.startswith("xoxb-") or not value.isascii():
        raise BadChannelError("is not a bot token: one begins with xoxb-")


FIELDS = (
    Field(
        name="channel",
        label="Slack channel",
        help="its id, or its name with #; the bot must be a member: /invite it there",
        example="#training-alerts",
        is_required=True,
    ),
    Field(
        name="token",
        label="Bot token",
        help="of an app with the scope chat:write, from its page OAuth & Permissions",
        example="xoxb-…",
        is_secret=True,
        is_required=True,
        check=_is_bot_token,
    ),
    MENTION,
    Field(
        name="api_url",
        label="API address",
        help="only for a gateway of your own in front of Slack",
        example=API,
        check=is_address,
    ),
)
# https://docs.slack.dev/reference/methods/chat.postMessage#errors
_WORDS = {
    "invalid_auth": "Slack does not know the bot token: give the channel the app's present one",
    "not_authed": "Slack got no bot token",
    "account_inactive": "the bot was removed from the workspace: install the app again",
    "token_revoked": "the bot token was revoked: install the app again and change the token",
    "token_expired": "the bot token has expired: install the app again and change the token",
    "missing_scope": "the app lacks the scope chat:write: add it and install the app again",
    "channel_not_found": "Slack knows no such channel, or the bot is not in it: check the name, "
    "and /invite the bot",
    "not_in_channel": "the bot is not in the Slack channel: /invite it there",
    "is_archived": "the Slack channel is archived",
    "restricted_action": "the workspace forbids the bot to post in this channel",
    "ratelimited": "Slack asks for a pause",
    "rate_limited": "Slack asks for a pause",
    "internal_error": "Slack has an error of its own",
    "fatal_error": "Slack has an error of its own",
    "service_unavailable": "Slack is not available",
}
_UNREADABLE = ("invalid_blocks", "invalid_attachments", "msg_too_long", "msg_blocks_too_long")
# The first message is gone or too old to edit: the thread below it may still be there.
_NOT_EDITABLE = ("message_not_found", "cant_update_message", "edit_window_closed")
_NO_THREAD = ("thread_not_found", "message_not_found")


# Said once more, while the first message shows how things stand: a reminder, or an opening that
# somebody had sent again, perhaps after the end.
_ANEW = (Topic.REMINDER, Topic.OPENED)


class SlackBot:
    """Posts, edits and replies."""

    def __init__(
        self, channel: str, token: str, mention: str, api_url: str, outgoing: Outgoing
    ) -> None:
        self._channel, self._mention = channel, mention
        self._token, self._api_url, self._outgoing = token, api_url.rstrip("/"), outgoing

    async def send(self, message: Message, thread: str) -> Outcome:
        if not thread:
            return await self._first(message)
        place, _, first = thread.partition("/")
        if message.topic not in _ANEW:
            # Editing again is harmless, so an attempt that failed half-way is simply repeated.
            edited = await self._edit(message, place, first)
            if isinstance(edited, (TryAgain, Refused)):
                return edited
        return await self._reply(message, place, first)

    async def _first(self, message: Message) -> Outcome:
        said = await self._call("chat.postMessage", message, {"channel": self._channel})
        if isinstance(said, _Said):
            return said.accepted() if said.is_ok else said.failure()
        return said

    async def _edit(self, message: Message, place: str, first: str) -> Outcome:
        said = await self._call("chat.update", message, {"channel": place, "ts": first})
        if not isinstance(said, _Said):
            return said
        if said.is_ok or said.error in _NOT_EDITABLE:
            return Accepted(status=said.status)
        return said.failure()

    async def _reply(self, message: Message, place: str, first: str) -> Outcome:
        where: slack_blocks.Json = {"channel": place, "thread_ts": first}
        if message.topic in _ANEW:
            where["reply_broadcast"] = True  # a thread alone would remind nobody
        said = await self._call("chat.postMessage", message, where, is_reply=True)
        if not isinstance(said, _Said):
            return said
        if said.is_ok:
            return Accepted(status=said.status, thread=f"{place}/{first}")
        return await self._first(message) if said.error in _NO_THREAD else said.failure()

    async def _call(
        self, method: str, message: Message, where: slack_blocks.Json, *, is_reply: bool = False
    ) -> _Said | TryAgain | Refused:
        shape = slack_blocks.reply if is_reply else slack_blocks.whole
        said = await self._post(method, shape(message, self._mention) | where)
        if isinstance(said, _Said) and said.error in _UNREADABLE:
            # An alert without its looks is better than none.
            said = await self._post(method, slack_blocks.plain(message, self._mention) | where)
        return said

    async def _post(self, method: str, body: slack_blocks.Json) -> _Said | TryAgain | Refused:
        headers = {
            "content-type": "application/json; charset=utf-8",
            "authorization": f"Bearer {self._token}",
        }
        url, sent = f"{self._api_url}/{method}", json.dumps(body).encode()
        answer = await answers.of_request(self._outgoing.post(url, sent, headers))
        if isinstance(answer, TryAgain):
            return answer
        return _Said.read(answer) or _unexpected(answer)


class _Said:
    """What Slack answered: its methods say `ok` or an error, both with HTTP status 200."""

    def __init__(self, answer: Answer, document: slack_blocks.Json) -> None:
        self._answer, self._document = answer, document
        self.status = answer.status
        self.is_ok = document["ok"] is True
        self.error = "" if self.is_ok else str(document.get("error", "no reason"))[:100]

    @classmethod
    def read(cls, answer: Answer) -> _Said | None:
        """None for an answer that is not Slack's."""
        try:
            document = json.loads(answer.text)
        except ValueError:
            return None
        is_slack = isinstance(document, dict) and isinstance(document.get("ok"), bool)
        return cls(answer, document) if is_slack else None

    def accepted(self) -> Accepted:
        place, first = self._document.get("channel"), self._document.get("ts")
        thread = f"{place}/{first}" if isinstance(place, str) and isinstance(first, str) else ""
        return Accepted(status=self.status, thread=thread)

    def failure(self) -> TryAgain:
        """Also a bad token or channel: once that is mended, the message arrives by itself."""
        told = _WORDS.get(self.error, "Slack refused the message")
        return TryAgain(
            error=f"{told} ({self.error})",
            status=self.status,
            after_s=answers.after_s(self._answer),
        )


def _unexpected(answer: Answer) -> TryAgain | Refused:
    found = answers.outcome(answer)
    if isinstance(found, Accepted):
        return TryAgain(error="the answer is not one of Slack's: check the API address", status=200)
    return found


def _make(options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing) -> SlackBot:
    return SlackBot(
        channel=options["channel"],
        token=secrets["token"],
        mention=slack_text.mentions(options.get("mention", "")),
        api_url=options.get("api_url") or API,
        outgoing=outgoing,
    )


KIND = Kind(
    label="Slack, by bot",
    about="One message per incident that is edited as it goes on, with its history in the thread.",
    fields=FIELDS,
    make=_make,
    target=lambda options, secrets: options.get("channel", ""),
)
