"""Channels over the API: what is kept, what is never told, and what the test button says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from tests.support.receiver import Receiver
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PATH = "/api/v1/channels"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver.started() as found:
        yield found


@pytest.fixture(autouse=True)
def _no_channels(admin: httpx.Client) -> Iterator[None]:
    yield
    for row in admin.get(PATH).json()["items"]:
        admin.delete(f"{PATH}/{row['id']}")


def webhook(receiver: Receiver, **changes: Any) -> dict[str, Any]:
    secrets = {"url": f"{receiver.url}/hook", "signing_key": KEY}
    return {"name": "robots", "kind": "webhook", "secrets": secrets, **changes}


def made(admin: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    answer = admin.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] in ("urn:hangwatch:bad-channel", "urn:hangwatch:unreadable-secret")
    return str(answer.json()["detail"])


def test_a_channel_is_kept_and_its_secrets_are_never_told(
    admin: httpx.Client, receiver: Receiver
) -> None:
    channel = made(admin, webhook(receiver, matchers=[{"field": "job", "pattern": "gpt-*"}]))
    told = [
        admin.get(f"{PATH}/{channel['id']}").text,
        admin.get(PATH).text,
        admin.get("/api/v1/audit").text,
    ]

    assert channel["secret_names"] == ["signing_key", "url"]
    assert channel["target"] == receiver.url.removeprefix("http://")
    assert channel["topics"] == [
        "opened", "reminder", "acknowledged", "resolved", "blind", "sighted",
    ]  # fmt: skip
    assert not [text for text in told if KEY in text or "/hook" in text]


def test_a_change_keeps_the_secrets_that_it_does_not_name(
    admin: httpx.Client, receiver: Receiver
) -> None:
    channel = made(admin, webhook(receiver))
    path = f"{PATH}/{channel['id']}"

    changed = admin.patch(path, json={"name": "machines", "remind_s": 600}).json()
    outcome = admin.post(f"{path}/test").json()

    assert (changed["name"], changed["remind_s"]) == ("machines", 600)
    assert changed["secret_names"] == ["signing_key", "url"]
    assert outcome["is_accepted"], outcome
    assert Verifier(KEY).verify(receiver.requests[-1].body, receiver.requests[-1].headers)


def test_a_secret_is_taken_away_by_null_unless_it_is_needed(
    admin: httpx.Client, receiver: Receiver
) -> None:
    body = webhook(receiver)
    body["secrets"]["authorization"] = "Bearer abc"
    path = f"{PATH}/{made(admin, body)['id']}"

    less = admin.patch(path, json={"secrets": {"authorization": None}}).json()
    needed = admin.patch(path, json={"secrets": {"signing_key": None}})

    assert less["secret_names"] == ["signing_key", "url"]
    assert "Signing key is missing" in refusal(needed)


def test_a_secret_may_lie_in_a_file_of_the_server(
    admin: httpx.Client, api_server: RunningServer, receiver: Receiver
) -> None:
    (api_server.data_dir / "secrets" / "robots-key").write_text(f"{KEY}\n", encoding="utf-8")
    body = webhook(receiver)
    body["secrets"]["signing_key"] = {"file": "robots-key"}

    channel = made(admin, body)

    assert admin.post(f"{PATH}/{channel['id']}/test").json()["is_accepted"]
    assert Verifier(KEY).verify(receiver.requests[-1].body, receiver.requests[-1].headers)


@pytest.mark.parametrize("name", ["../session.key", "/etc/passwd", ".hidden", "a/b", ""])
def test_a_file_outside_the_folder_is_never_read(
    admin: httpx.Client, receiver: Receiver, name: str
) -> None:
    body = webhook(receiver)
    body["secrets"]["signing_key"] = {"file": name}

    assert "plain name" in refusal(admin.post(PATH, json=body))


def test_a_link_out_of_the_folder_is_never_followed(
    admin: httpx.Client, api_server: RunningServer, receiver: Receiver
) -> None:
    (api_server.data_dir / "outside").write_text(KEY, encoding="utf-8")
    (api_server.data_dir / "secrets" / "way-out").symlink_to(api_server.data_dir / "outside")
    body = webhook(receiver)
    body["secrets"]["signing_key"] = {"file": "way-out"}

    assert "leads out of" in refusal(admin.post(PATH, json=body))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "webhook"}, "Address is missing"),
        ({"kind": "webhook", "options": {"colour": "red"}}, "'colour' is no option"),
        ({"kind": "slack_bot", "secrets": {"token": "xoxb-1"}}, "Slack channel is missing"),
        (
            {"kind": "slack_webhook", "secrets": {"url": "ftp://x/y"}},
            "Webhook address is not an address",
        ),
        (
            {
                "kind": "slack_webhook",
                "secrets": {"url": "https://hooks.slack.com/x"},
                "options": {"mention": "everyone!"},
            },
            "Mention names nobody",
        ),
        ({"kind": "pagerduty", "secrets": {"routing_key": "short"}}, "32 letters and digits"),
        ({"kind": "apprise", "secrets": {"url": "discord"}}, "not an address of Apprise"),
    ],
)
def test_what_cannot_work_is_refused_in_words(
    admin: httpx.Client, body: dict[str, Any], words: str
) -> None:
    assert words in refusal(admin.post(PATH, json={"name": "x", **body}))


def test_two_channels_have_two_names(admin: httpx.Client, receiver: Receiver) -> None:
    made(admin, webhook(receiver))

    assert admin.post(PATH, json=webhook(receiver)).status_code == 409


def test_the_test_says_why_a_receiver_did_not_take_it(
    admin: httpx.Client, receiver: Receiver
) -> None:
    channel = made(admin, webhook(receiver))
    receiver.answer(401, "who are you?")

    outcome = admin.post(f"{PATH}/{channel['id']}/test").json()
    receiver.answer(200)

    assert not outcome["is_accepted"]
    assert outcome["status"] == 401
    assert "who are you?" in outcome["error"]


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest/meta-data", "http://10.1.2.3/x", "http://[::1]:9/x"]
)
def test_a_channel_cannot_call_what_only_the_server_reaches(
    admin: httpx.Client, receiver: Receiver, url: str
) -> None:
    body = webhook(receiver)
    body["secrets"]["url"] = url
    channel = made(admin, body)

    outcome = admin.post(f"{PATH}/{channel['id']}/test").json()

    assert not outcome["is_accepted"]
    assert "outgoing_allow" in outcome["error"]


def test_disabled_says_by_whom_and_enabled_forgets_it(
    admin: httpx.Client, receiver: Receiver
) -> None:
    path = f"{PATH}/{made(admin, webhook(receiver))['id']}"

    off = admin.patch(path, json={"is_enabled": False}).json()
    on = admin.patch(path, json={"is_enabled": True}).json()

    assert off["disabled_reason"].startswith("by ")
    assert (on["is_enabled"], on["disabled_reason"]) == (True, "")


def test_what_people_do_with_channels_is_audited(admin: httpx.Client, receiver: Receiver) -> None:
    channel = made(admin, webhook(receiver))
    admin.post(f"{PATH}/{channel['id']}/test")
    admin.delete(f"{PATH}/{channel['id']}")

    rows = admin.get("/api/v1/audit").json()["items"]
    own = [row for row in rows if row["subject"] == f"channel:{channel['id']}"]

    assert [row["action"] for row in own] == ["channel.delete", "channel.test", "channel.create"]


def test_every_kind_explains_its_fields(admin: httpx.Client) -> None:
    kinds = admin.get(f"{PATH}/kinds").json()

    assert {kind["kind"] for kind in kinds} == {
        "webhook", "slack_webhook", "slack_bot", "alertmanager", "pagerduty", "apprise",
    }  # fmt: skip
    assert all(field["help"] for kind in kinds for field in kind["fields"])
