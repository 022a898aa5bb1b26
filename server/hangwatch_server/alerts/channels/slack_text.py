"""Text for Slack: what a job wrote can neither mention anybody nor break out of its place.

Slack reads three characters as control characters, `&`, `<` and `>`; mentions and links need them
(https://docs.slack.dev/messaging/formatting-message-text). Its limits count escaped text.
"""

from __future__ import annotations

import re

from hangwatch_server import texts
from hangwatch_server.alerts.channels.fields import BadChannelError

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_USER, _GROUP = re.compile(r"[UW][A-Z0-9]{5,20}"), re.compile(r"S[A-Z0-9]{5,20}")
_EVERYBODY = ("here", "channel")


def escaped(text: str, limit: int) -> str:
    """At most `limit` characters after escaping; cut text ends in an ellipsis."""
    kept, size = [], 0
    for character in texts.plain(text):
        piece = _ESCAPES.get(character, character)
        if size + len(piece) > limit - 1:
            kept.append("…")
            break
        kept.append(piece)
        size += len(piece)
    return "".join(kept)


def code(lines: tuple[str, ...], limit: int) -> str:
    """A block of code that its own text cannot end."""
    inside = escaped("\n".join(lines).replace("```", "'''"), limit - 8)
    return f"```\n{inside}\n```"


def mentions(text: str) -> str:
    """`here U012AB3CD` as Slack wants it; raise BadChannelError for what is neither."""
    return " ".join(_mention(word) for word in text.replace(",", " ").split())


def _mention(word: str) -> str:
    name = word.lstrip("@")
    if name in _EVERYBODY:
        return f"<!{name}>"
    if _USER.fullmatch(name):
        return f"<@{name}>"
    if _GROUP.fullmatch(name):
        return f"<!subteam^{name}>"
    raise BadChannelError(
        "names nobody that Slack knows: write here, channel, a member id (U012AB3CD) or a group "
        "id (S012AB3CD), with spaces between several"
    )


def are_mentions(text: str) -> None:
    mentions(text)
