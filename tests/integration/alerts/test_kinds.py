"""Each kind of channel against a receiver that speaks as its service does."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.support import alerts
from tests.support.receiver import Receiver, Reply

from hangwatch_server.alerts import channels
from hangwatch_server.alerts.channels import apprise
from hangwatch_server.alerts.channels.base import Accepted, Outcome, Refused, TryAgain
from hangwatch_server.alerts.guard import Guard, read_allowed
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import ChannelKind, Topic

# The library imports a module of the standard library that Python is about to drop.
old_module = pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")
pytestmark = [pytest.mark.anyio, pytest.mark.integration, old_module]
POSTED = Reply(200, json.dumps({"ok": True, "channel": "C024BE91L", "ts": "1763661603.000200"}))
EDITED = Reply(200, json.dumps({"ok": True, "channel": "C024BE91L", "ts": "1763661603.000200"}))
THREAD = "C024BE91L/1763661603.000200"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver.started() as found:
        yield found


async def send(
    kind: ChannelKind,
    topic: Topic,
    thread: str = "",
    *,
    options: dict[str, str] | None = None,
    secrets: dict[str, str] | None = None,
    services: frozenset[str] = frozenset(),
) -> Outcome:
    outgoing = Outgoing(Guard(read_allowed("127.0.0.0/8")), services=services)
    try:
        sender = channels.sender(kind, options or {}, secrets or {}, outgoing)
        return await sender.send(alerts.message(topic), thread)
    finally:
        await outgoing.close()


async def by_bot(receiver: Receiver, topic: Topic, thread: str = "") -> Outcome:
    options = {"channel": "#alerts", "api_url": f"{receiver.url}/api", "mention": "here"}
    secrets = {"token": "xoxb-1"}
    return await send(ChannelKind.SLACK_BOT, topic, thread, options=options, secrets=secrets)


def says(error: str) -> Reply:
    return Reply(200, json.dumps({"ok": False, "error": error}))


async def test_a_bot_posts_the_first_message_and_keeps_its_thread(receiver: Receiver) -> None:
    receiver.answer_in_turn(POSTED)

    outcome = await by_bot(receiver, Topic.OPENED)
    (request,) = receiver.requests

    assert outcome == Accepted(status=200, thread=THREAD)
    assert request.path == "/api/chat.postMessage"
    assert request.headers["authorization"] == "Bearer xoxb-1"
    assert request.json["channel"] == "#alerts"
    assert request.json["parse"] == "none"


async def test_an_opening_that_is_sent_again_leaves_the_first_message_as_it_stands_now(
    receiver: Receiver,
) -> None:
    receiver.answer_in_turn(POSTED)

    await by_bot(receiver, Topic.OPENED, THREAD)

    (request,) = receiver.requests
    assert request.path == "/api/chat.postMessage"
    assert request.json["reply_broadcast"] is True


@pytest.mark.parametrize("topic", [Topic.ACKNOWLEDGED, Topic.RESOLVED])
async def test_a_bot_edits_the_first_message_and_replies_below(
    receiver: Receiver, topic: Topic
) -> None:
    receiver.answer_in_turn(EDITED, POSTED)

    outcome = await by_bot(receiver, topic, THREAD)
    edit, reply = receiver.requests

    assert outcome == Accepted(status=200, thread=THREAD)
    assert edit.path == "/api/chat.update"
    assert (edit.json["channel"], edit.json["ts"]) == tuple(THREAD.split("/"))
    assert reply.path == "/api/chat.postMessage"
    assert reply.json["thread_ts"] == THREAD.split("/")[1]
    assert "<!here>" not in json.dumps([edit.json, reply.json])


async def test_a_reminder_is_a_reply_that_the_channel_sees(receiver: Receiver) -> None:
    receiver.answer_in_turn(POSTED)

    await by_bot(receiver, Topic.REMINDER, THREAD)
    (request,) = receiver.requests

    assert request.json["reply_broadcast"] is True
    assert "<!here>" in request.json["text"]


async def test_an_edit_that_failed_is_repeated_before_the_reply(receiver: Receiver) -> None:
    receiver.answer_in_turn(Reply(503, "busy"))

    outcome = await by_bot(receiver, Topic.RESOLVED, THREAD)

    assert isinstance(outcome, TryAgain)
    assert [request.path for request in receiver.requests] == ["/api/chat.update"]


async def test_a_first_message_that_is_gone_still_gets_its_reply(receiver: Receiver) -> None:
    receiver.answer_in_turn(says("message_not_found"), POSTED)

    assert isinstance(await by_bot(receiver, Topic.RESOLVED, THREAD), Accepted)


async def test_blocks_that_slack_refuses_are_said_in_plain_text(receiver: Receiver) -> None:
    receiver.answer_in_turn(says("invalid_blocks"), POSTED)

    outcome = await by_bot(receiver, Topic.OPENED)

    assert isinstance(outcome, Accepted)
    assert "blocks" not in receiver.requests[-1].json
    assert "Rank 5" in receiver.requests[-1].json["text"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("invalid_auth", "bot token"),
        ("channel_not_found", "/invite"),
        ("not_in_channel", "/invite"),
        ("missing_scope", "chat:write"),
        ("is_archived", "archived"),
        ("something_new", "something_new"),
    ],
)
async def test_what_slack_says_is_told_in_words(receiver: Receiver, error: str, words: str) -> None:
    receiver.answer_in_turn(says(error))

    outcome = await by_bot(receiver, Topic.OPENED)

    assert isinstance(outcome, TryAgain)
    assert words in outcome.error


async def test_slack_that_asks_for_a_pause_gets_it(receiver: Receiver) -> None:
    body = json.dumps({"ok": False, "error": "ratelimited"})
    receiver.answer(429, body, {"retry-after": "30"})

    outcome = await by_bot(receiver, Topic.OPENED)

    assert isinstance(outcome, TryAgain)
    assert outcome.after_s == 30


async def test_an_answer_that_is_not_slacks_is_no_success(receiver: Receiver) -> None:
    receiver.answer(200, "<html>Sign in</html>")

    assert isinstance(await by_bot(receiver, Topic.OPENED), TryAgain)


async def by_webhook(receiver: Receiver) -> Outcome:
    secrets = {"url": f"{receiver.url}/services/T/B/X"}
    return await send(ChannelKind.SLACK_WEBHOOK, Topic.OPENED, secrets=secrets)


async def test_a_slack_webhook_takes_the_message(receiver: Receiver) -> None:
    outcome = await by_webhook(receiver)

    assert outcome == Accepted(status=200)
    assert receiver.requests[0].json["attachments"][0]["color"] == "#b93a00"


async def test_a_slack_webhook_that_was_removed_says_what_to_do(receiver: Receiver) -> None:
    receiver.answer(404, "no_service")

    outcome = await by_webhook(receiver)

    assert isinstance(outcome, TryAgain)
    assert "make another" in outcome.error


async def test_a_slack_webhook_refuses_blocks_and_takes_plain_text(receiver: Receiver) -> None:
    receiver.answer_in_turn(Reply(400, "invalid_blocks"), Reply(200, "ok"))

    assert await by_webhook(receiver) == Accepted(status=200)
    assert "blocks" not in receiver.requests[1].json


async def by_alertmanager(receiver: Receiver, topic: Topic, thread: str = "") -> Outcome:
    options = {"url": f"{receiver.url}/", "severity": "page"}
    return await send(ChannelKind.ALERTMANAGER, topic, thread, options=options)


async def test_an_alert_fires_with_labels_for_routes_until_its_end(receiver: Receiver) -> None:
    await by_alertmanager(receiver, Topic.OPENED)
    (alert,) = receiver.requests[0].json

    assert receiver.requests[0].path == "/api/v2/alerts"
    assert alert["labels"] == {
        "alertname": "HangwatchHang",
        "incident": "1f2e3d4c5b6a",
        "job": "gpt-7b",
        "attempt": "1",
        "kind": "missing_ranks",
        "condition": "in_dataloader",
        "node": "node-b",
        "severity": "page",
    }
    assert alert["endsAt"] > alert["startsAt"]
    assert alert["generatorURL"] == alerts.URL


async def test_the_same_labels_end_the_alert_though_the_verdict_has_changed(
    receiver: Receiver,
) -> None:
    """Alertmanager knows an alert by its labels alone."""
    first = await by_alertmanager(receiver, Topic.OPENED)
    assert isinstance(first, Accepted)
    changed = json.dumps(json.loads(first.thread) | {"kind": "deadlock"})

    await by_alertmanager(receiver, Topic.RESOLVED, changed)
    (alert,) = receiver.requests[1].json

    assert alert["labels"]["kind"] == "deadlock"
    assert alert["endsAt"] == alerts.message(Topic.RESOLVED).at.isoformat()


async def by_pagerduty(receiver: Receiver, topic: Topic) -> Outcome:
    options = {"api_url": receiver.url}
    secrets = {"routing_key": "a" * 32}
    return await send(ChannelKind.PAGERDUTY, topic, options=options, secrets=secrets)


@pytest.mark.parametrize(
    ("topic", "action"),
    [
        (Topic.OPENED, "trigger"),
        (Topic.REMINDER, "trigger"),
        (Topic.ACKNOWLEDGED, "acknowledge"),
        (Topic.RESOLVED, "resolve"),
    ],
)
async def test_pagerduty_follows_one_incident_by_its_key(
    receiver: Receiver, topic: Topic, action: str
) -> None:
    receiver.answer(202, "{}")

    outcome = await by_pagerduty(receiver, topic)
    event = receiver.requests[0].json

    assert outcome == Accepted(status=202)
    assert receiver.requests[0].path == "/v2/enqueue"
    assert (event["event_action"], event["dedup_key"]) == (action, "incident:1f2e3d4c5b6a")
    assert event["payload"]["summary"].startswith("Rank 5")


async def test_a_test_of_pagerduty_leaves_no_incident_behind(receiver: Receiver) -> None:
    receiver.answer(202, "{}")

    await by_pagerduty(receiver, Topic.TEST)

    assert [request.json["event_action"] for request in receiver.requests] == ["trigger", "resolve"]


async def test_an_event_that_pagerduty_refuses_is_not_tried_again(receiver: Receiver) -> None:
    receiver.answer(400, '{"status":"invalid event"}')

    outcome = await by_pagerduty(receiver, Topic.OPENED)

    assert isinstance(outcome, Refused)
    assert "invalid event" in outcome.error


async def by_apprise(url: str, *services: str) -> Outcome:
    return await send(
        ChannelKind.APPRISE, Topic.OPENED, secrets={"url": url}, services=frozenset(services)
    )


async def test_apprise_takes_the_message_to_a_service_of_the_list(receiver: Receiver) -> None:
    outcome = await by_apprise(receiver.url.replace("http:", "json:"), "json")

    assert outcome == Accepted()
    assert "Rank 5" in receiver.requests[0].json["title"]
    assert alerts.URL in receiver.requests[0].json["message"]


async def test_a_failure_of_apprise_says_what_the_library_says(receiver: Receiver) -> None:
    receiver.answer(500, "no")

    outcome = await by_apprise(receiver.url.replace("http:", "json:"), "json")

    assert isinstance(outcome, TryAgain)
    assert "error=500" in outcome.error


async def test_a_service_that_nobody_listed_is_refused() -> None:
    outcome = await by_apprise("json://127.0.0.1", "discord")

    assert isinstance(outcome, Refused)
    assert "apprise_schemes" in outcome.error


@pytest.mark.parametrize(
    "url", ["mailto://ada:pw@gmail.com?smtp=10.0.0.1&to=b@c.org", "json://169.254.169.254/"]
)
async def test_apprise_goes_to_no_inside_host(url: str) -> None:
    outcome = await by_apprise(url, "json", "mailto")

    assert isinstance(outcome, TryAgain)
    assert "outgoing_allow" in outcome.error


@pytest.mark.parametrize(
    "url",
    [
        "json://127.0.0.1/?template=/etc/passwd",
        "mailtos://a:b@gmail.com?pgpkey=/etc/x",
        "workflows://example.org:443/abc/signature?to=x;template=/etc/passwd",
        "workflows://example.org:443/abc/signature?to=x#&template=/etc/passwd",
        "workflows://example.org:443/abc/signature?to=x;%74emplate=/etc/passwd",
        "json://127.0.0.1/?to=x;redirect=yes",
        "json://127.0.0.1/?to=x;+host=inside",
    ],
)
async def test_apprise_is_given_no_file_of_the_server(url: str) -> None:
    outcome = await by_apprise(url, "json", "mailtos", "workflows")

    assert isinstance(outcome, Refused)
    assert "not let through" in outcome.error


async def test_apprise_asks_no_environment_for_a_proxy(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Receiver.started() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)

        outcome = await by_apprise(receiver.url.replace("http:", "json:"), "json")

        assert outcome == Accepted()
        assert len(receiver.requests) == 1
        assert proxy.requests == []


async def test_apprise_goes_by_the_proxy_of_the_settings(receiver: Receiver) -> None:
    with Receiver.started() as proxy:
        guard = Guard(read_allowed("127.0.0.0/8"))
        url = receiver.url.replace("http:", "json:")
        sender = apprise.Apprise(url, frozenset({"json"}), guard, proxy.url)

        assert await sender.send(alerts.message(Topic.OPENED), "") == Accepted()

        assert receiver.requests == []
        assert len(proxy.requests) == 1


async def test_apprise_follows_no_redirect(receiver: Receiver) -> None:
    """Its host was checked, and one that it leads to was not."""
    receiver.answer(307, headers={"location": f"{receiver.url}/inside"})

    await by_apprise(receiver.url.replace("http:", "json:"), "json")

    assert receiver.to("/inside") == []


async def test_what_a_job_wrote_is_no_markup_and_calls_nobody_by_apprise(
    receiver: Receiver,
) -> None:
    url = receiver.url.replace("http:", "json:")
    title = "Rank 5 of <a href=x> @everyone is in <module> · [go](https://evil.example)"
    message = alerts.message(Topic.OPENED, title=title, text=title)
    guard = Guard(read_allowed("127.0.0.0/8"))

    await apprise.Apprise(url, frozenset({"json"}), guard, "").send(message, "")

    sent = receiver.requests[0].json
    for text in (sent["title"], sent["message"]):
        assert "in \u2039module\u203a" in text
        assert not [part for part in ("<", "@everyone", "](") if part in text]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mailto://ada:pw@example.org?to=b@example.org", "text"),
        ("tgram://123456789:abcdefghijklmnopqrstuvwxyz123456789/12315544", "text"),
        ("gchat://space/key/token", None),
    ],
)
async def test_mail_and_telegram_are_told_that_it_is_text(url: str, expected: str | None) -> None:
    service = apprise.service_of(url, frozenset({"mailto", "tgram", "gchat"}))

    assert apprise.body_format(service) == expected


async def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    outcome = await by_apprise("json://127.0.0.1", "json")

    assert isinstance(outcome, TryAgain)
    assert "pip install 'hangwatch[apprise]'" in outcome.error
