"""A message as Slack shows it: the culprit in the first line, then why, then what one can do.

Pure. Block Kit with its limits: https://docs.slack.dev/reference/block-kit/blocks
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from hangwatch_server.alerts.channels import slack_text
from hangwatch_server.model.alerts import Message, Topic
from hangwatch_server.model.records import Incident
from hangwatch_server.model.words import ACTIVE_INCIDENTS

MAX_SECTION_CHARS = 3000
MAX_BLOCKS = 50
MAX_TEXT_CHARS = 3000
MAX_TITLE_CHARS = 600
MAX_ROWS = 5
MAX_EVENTS = 10
MAX_URL_CHARS = 3000
Json = dict[str, Any]  # a JSON object: its values are of any of JSON's types
_MARKS = {
    Topic.OPENED: (":red_circle:", "#b93a00"),
    Topic.REMINDER: (":red_circle:", "#b93a00"),
    Topic.ACKNOWLEDGED: (":large_yellow_circle:", "#8a5a00"),
    Topic.RESOLVED: (":large_green_circle:", "#0b7558"),
    Topic.SLOW: (":snail:", "#75640a"),
    Topic.BLIND: (":warning:", "#646b78"),
    Topic.SIGHTED: (":large_green_circle:", "#0b7558"),
    Topic.TEST: (":white_check_mark:", "#2f56c6"),
}
_LOUD = (Topic.OPENED, Topic.REMINDER, Topic.BLIND)


def whole(message: Message, mention: str = "") -> Json:
    """The message that stands in the channel, with all that is known."""
    return _body(message, mention, _details(message))


def reply(message: Message, mention: str = "") -> Json:
    """What is said below it in its thread: only what is new, and at the end the history."""
    rows = [_section(slack_text.escaped(message.text, MAX_SECTION_CHARS))]
    if message.topic is Topic.RESOLVED and message.incident is not None:
        rows += _history(message.incident)
    return _body(message, mention, [row for row in rows if row is not None])


def plain(message: Message, mention: str = "") -> Json:
    """Without blocks, for a Slack that refuses them."""
    text = "\n".join((_headline(message, mention), message.text and _escaped(message.text)))
    link = f"\n<{message.url}|Open>" if _is_link(message.url) else ""
    return {"text": text[: MAX_TEXT_CHARS - len(link)] + link, **_QUIET}


# Nothing in the text is looked at for names and links of its own accord.
_QUIET: Json = {"parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}


def _body(message: Message, mention: str, details: list[Json]) -> Json:
    _, colour = _MARKS[message.topic]
    headline = _headline(message, mention)
    attachment = {
        "color": colour,
        "fallback": slack_text.escaped(message.title, MAX_TITLE_CHARS),
        "blocks": details[:MAX_BLOCKS],
    }
    return {
        "text": headline,  # what a notification shows
        "blocks": [_section(headline)],
        "attachments": [attachment],
        **_QUIET,
    }


def _headline(message: Message, mention: str) -> str:
    mark, _ = _MARKS[message.topic]
    title = slack_text.escaped(message.title.replace("\n", " "), MAX_TITLE_CHARS)
    called = f" {mention}" if mention and message.topic in _LOUD else ""
    return f"{mark} *{title}*{called}"


def _details(message: Message) -> list[Json]:
    incident = message.incident
    rows: list[Json | None] = [_section(_escaped(message.text))]
    if incident is not None:
        is_over = incident.state not in ACTIVE_INCIDENTS
        rows += [
            None if is_over else _titled("Who waits for whom", _path(incident)),
            _stack(message, incident, "was" if is_over else "is"),
            _context(incident),
        ]
    rows.append(_buttons(message))
    return [row for row in rows if row is not None]


def _path(incident: Incident) -> Iterable[str]:
    for step in incident.verdict.path[:MAX_ROWS]:
        target = f" for {', '.join(f'rank {rank}' for rank in step.for_)}" if step.for_ else ""
        yield f"rank {step.rank}: {_escaped(step.waits_in, 200)}{target}"


def _stack(message: Message, incident: Incident, verb: str) -> Json | None:
    if not message.stack or not incident.verdict.culprits:
        return None
    first = incident.verdict.culprits[0]
    block = slack_text.code(message.stack, MAX_SECTION_CHARS - 100)
    return _section(f"*Rank {first.rank} {verb} at*\n{block}")


def _context(incident: Incident) -> Json:
    parts = [
        f"job {_escaped(incident.job_name, 80)}",
        f"attempt {incident.attempt}",
        f"opened {_time(incident.opened_at)}",
        f"{incident.verdict.confidence * 100:.0f} % sure",
    ]
    text = {"type": "mrkdwn", "text": " · ".join(parts), "verbatim": True}
    return {"type": "context", "elements": [text]}


def _history(incident: Incident) -> list[Json | None]:
    events = [
        f"{_time(event.at)}  {_escaped(event.new, 60)}"
        + (f": {_escaped(event.why, 120)}" if event.why else "")
        + (f" (by {_escaped(event.by, 60)})" if event.by else "")
        for event in incident.history[-MAX_EVENTS:]
    ]
    return [_titled("History", events)]


def _buttons(message: Message) -> Json | None:
    """Plain links: what changes something is a page here that asks once more."""
    if not _is_link(message.url):
        return None
    incident = message.incident
    found = [_button("Open incident" if incident else "Open", message.url, is_first=True)]
    if incident is not None and incident.state in ACTIVE_INCIDENTS:
        if not incident.acknowledged_by:
            found.append(_button("Acknowledge", f"{message.url}/acknowledge"))
        found.append(_button("Snooze 1 h", f"{message.url}/snooze?minutes=60"))
    return {"type": "actions", "elements": found}


def _button(label: str, url: str, *, is_first: bool = False) -> Json:
    text = {"type": "plain_text", "text": label}
    button: Json = {"type": "button", "text": text, "url": url, "action_id": label.lower()}
    return button | {"style": "primary"} if is_first else button


def _titled(title: str, rows: Iterable[str]) -> Json | None:
    """Whole rows as long as they fit: a cut one could lose the end of a link or an escape."""
    kept, size = [f"*{title}*"], len(title) + 2
    for row in rows:
        size += len(row) + 1
        if size > MAX_SECTION_CHARS:
            break
        kept.append(row)
    return _section("\n".join(kept)) if len(kept) > 1 else None


def _section(text: str) -> Json | None:
    if not text:
        return None
    # Verbatim: nothing that looks like a link or a channel is made one.
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _escaped(text: str, limit: int = 2900) -> str:
    return slack_text.escaped(text, limit)


def _time(at: datetime) -> str:
    """In the reader's own zone, with UTC for clients that cannot."""
    told = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"<!date^{int(at.timestamp())}^{{date_num}} {{time_secs}}|{told}>"


def _is_link(url: str) -> bool:
    return url.startswith(("https://", "http://")) and len(url) < MAX_URL_CHARS - 30
