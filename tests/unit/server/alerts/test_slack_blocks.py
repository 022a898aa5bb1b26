"""What Slack is sent: the culprit first, within Slack's limits, whatever a job calls itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import alerts

from hangwatch_server import model
from hangwatch_server.alerts import messages
from hangwatch_server.alerts.channels import BadChannelError, slack_blocks, slack_text
from hangwatch_server.model.alerts import Topic

HOSTILE = (
    "<!channel> <!here> <@U012AB3CD> <https://evil.example|Open incident> ``` *bold* & \u202egnp "
    "<!subteam^S012AB3CD>"
)
# https://docs.slack.dev/reference/block-kit/blocks
LIMITS = {"section": 3000, "context": 3000, "button": 75}


def texts_of(value: Any) -> Iterator[tuple[str, str]]:
    """Every text object with the kind of block it is in."""
    if isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    if isinstance(value, dict):
        kind = value.get("type", "")
        for name, item in value.items():
            if name in ("text", "elements") and kind in ("section", "context", "button"):
                for one in item if isinstance(item, list) else [item]:
                    yield kind, one["text"]
            else:
                yield from texts_of(item)


def held(body: dict[str, Any]) -> None:
    """Slack would take it."""
    assert len(body["blocks"]) <= 50
    for attachment in body["attachments"]:
        assert len(attachment["blocks"]) <= 50
    for kind, text in texts_of([body["blocks"], body["attachments"]]):
        assert 0 < len(text) <= LIMITS[kind]
    assert 0 < len(body["text"]) <= slack_blocks.MAX_TEXT_CHARS


def hostile_incident(text: str) -> model.Incident:
    found = alerts.verdict(
        summary=text,
        hints=(text, text),
        path=(model.PathStep(rank=0, waits_in=text, for_=(5,)),),
    )
    event = model.IncidentEvent(at=alerts.OPENED, old="", new="open", why=text, by=text)
    return alerts.incident(job_name=text, summary=text, verdict=found, history=(event,) * 40)


def test_the_first_line_is_the_title_with_its_mark() -> None:
    body = slack_blocks.whole(alerts.message(Topic.OPENED))

    assert body["text"].startswith(":red_circle: *Rank 5 on node-b")
    assert body["blocks"][0]["text"]["text"] == body["text"]


def test_path_and_stack_of_the_culprit_are_told() -> None:
    told = json.dumps(slack_blocks.whole(alerts.message(Topic.OPENED)))

    assert "rank 0: dp-1 all_reduce #29 for rank 5" in told
    assert "*Rank 5 is at*" in told
    assert "train.py:88 in __getitem__" in told


def test_what_to_do_is_told_once() -> None:
    at = alerts.OPENED
    message = messages.of_incident(Topic.OPENED, alerts.incident(), "https://hangwatch", at)

    assert json.dumps(slack_blocks.whole(message)).count("Look at the storage") == 1


def test_of_what_is_over_nobody_waits_any_more() -> None:
    told = json.dumps(slack_blocks.whole(alerts.message(Topic.RESOLVED)))

    assert "*Rank 5 was at*" in told
    assert "Who waits" not in told


def buttons(topic: Topic) -> dict[str, str]:
    body = slack_blocks.whole(alerts.message(topic))
    rows = [block for block in body["attachments"][0]["blocks"] if block["type"] == "actions"]
    return {button["text"]["text"]: button["url"] for row in rows for button in row["elements"]}


def test_buttons_lead_to_pages_that_ask_once_more() -> None:
    assert buttons(Topic.OPENED) == {
        "Open incident": alerts.URL,
        "Acknowledge": f"{alerts.URL}/acknowledge",
        "Snooze 1 h": f"{alerts.URL}/snooze?minutes=60",
    }


def test_buttons_offer_nothing_that_is_done_already() -> None:
    assert list(buttons(Topic.ACKNOWLEDGED)) == ["Open incident", "Snooze 1 h"]
    assert list(buttons(Topic.RESOLVED)) == ["Open incident"]


def test_only_the_operators_own_mention_calls_anybody() -> None:
    incident = hostile_incident(HOSTILE)
    message = alerts.message(Topic.OPENED, incident, title=HOSTILE, text=HOSTILE, stack=(HOSTILE,))
    mention = slack_text.mentions("here U012AB3CD")

    told = json.dumps(slack_blocks.whole(message, mention), ensure_ascii=False)

    assert told.count("<!here>") == 2  # the text of the notification, and the headline
    assert told.count("<@U012AB3CD>") == 2
    for danger in ("<!channel>", "<!subteam", "<https://evil", "\u202e"):
        assert danger not in told


def test_nobody_is_called_when_somebody_has_it_or_it_is_over() -> None:
    for topic in (Topic.ACKNOWLEDGED, Topic.RESOLVED, Topic.TEST):
        assert "<!here>" not in json.dumps(slack_blocks.whole(alerts.message(topic), "<!here>"))


def test_a_stack_cannot_end_its_block_of_code() -> None:
    block = slack_text.code(("``` <!channel>", "b"), 3000)

    assert block.count("```") == 2


@pytest.mark.parametrize("topic", list(Topic))
def test_every_topic_stays_within_the_limits_with_texts_of_any_length(topic: Topic) -> None:
    message = alerts.message(
        topic,
        hostile_incident(HOSTILE * 200),
        title="&" * 5000,
        text="<>&" * 5000,
        stack=("`<&>" * 2000,) * 6,
    )

    held(slack_blocks.whole(message, "<!here>"))
    held(slack_blocks.reply(message, "<!here>"))
    assert len(slack_blocks.plain(message)["text"]) <= slack_blocks.MAX_TEXT_CHARS


@given(st.text(max_size=400), st.integers(min_value=10, max_value=200))
def test_escaped_text_fits_and_holds_no_control_of_slack(text: str, limit: int) -> None:
    found = slack_text.escaped(text, limit)
    bare = found.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")

    assert len(found) <= limit
    assert not set("<>&") & set(bare)


def test_the_end_of_a_thread_tells_the_history() -> None:
    event = model.IncidentEvent(at=alerts.OPENED, old="", new="confirmed", why="frozen", by="ada")
    message = alerts.message(Topic.RESOLVED, alerts.incident(history=(event,)))

    told = json.dumps(slack_blocks.reply(message))

    assert "*History*" in told
    assert "confirmed: frozen (by ada)" in told


@pytest.mark.parametrize(
    ("given_text", "found"),
    [
        ("here", "<!here>"),
        ("@channel", "<!channel>"),
        ("U012AB3CD, S012AB3CD", "<@U012AB3CD> <!subteam^S012AB3CD>"),
        ("", ""),
    ],
)
def test_a_mention_is_written_as_people_do(given_text: str, found: str) -> None:
    assert slack_text.mentions(given_text) == found


@pytest.mark.parametrize("text", ["everyone", "<!here>", "u012ab3cd", "ada"])
def test_a_mention_of_nobody_is_refused(text: str) -> None:
    with pytest.raises(BadChannelError, match="member id"):
        slack_text.mentions(text)
