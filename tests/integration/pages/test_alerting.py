"""Pages of alerting on a real server: channels and their test, the log, silences, links."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from tests.support.receiver import Receiver
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ADMIN_ONLY = ("/channels/new?kind=webhook", "/channels/x", "/channels/x/delete")
FOR_OPERATORS = (
    "/channels",
    "/deliveries",
    "/silences",
    "/incidents/x/acknowledge",
    "/incidents/x/snooze",
)
_CSRF = re.compile(r'name="csrf_token" value="([0-9a-f]+)"')


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver.started() as found:
        yield found


@pytest.fixture
def reader(house: RunningServer) -> Iterator[httpx.Client]:
    with house.client("") as client:
        client.headers["accept"] = "text/html"
        client.post("/login", data={"token": house.new_token("read")})
        yield client


def csrf(client: httpx.Client) -> str:
    match = _CSRF.search(client.get("/channels").text)
    assert match is not None
    return match[1]


def form(client: httpx.Client, receiver: Receiver, **changes: object) -> dict[str, object]:
    return {
        "csrf_token": csrf(client),
        "name": "robots",
        "secret-url": f"{receiver.url}/hook",
        "secret-signing_key": KEY,
        "topics": ["opened", "resolved"],
        "match-field": ["job", "node"],
        "match-pattern": ["gpt-*", ""],
        "after": "15",
        "remind": "30",
        "is_enabled": "on",
        **changes,
    }


@pytest.fixture
def channel(admin: httpx.Client, receiver: Receiver) -> Iterator[str]:
    """Address of the page of a channel that goes to the receiver."""
    answer = admin.post("/channels/new?kind=webhook", data=form(admin, receiver))
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    yield path
    admin.post(f"{path}/delete", data={"csrf_token": csrf(admin)})


def kept(admin: httpx.Client, house: RunningServer, channel: str) -> dict[str, object]:
    with house.client() as client:
        found: dict[str, object] = client.get(f"/api/v1{channel}").json()
    return found


@pytest.mark.parametrize("path", ADMIN_ONLY)
def test_only_an_administrator_changes_channels(operator: httpx.Client, path: str) -> None:
    assert operator.get(path).status_code == 403


@pytest.mark.parametrize("path", FOR_OPERATORS)
def test_a_reader_is_refused(reader: httpx.Client, path: str) -> None:
    assert reader.get(path).status_code == 403


def test_only_those_who_may_act_are_shown_the_way(
    operator: httpx.Client, reader: httpx.Client
) -> None:
    assert 'href="/channels"' in operator.get("/").text
    assert 'href="/channels"' not in reader.get("/").text


def test_without_channels_the_page_teaches(admin: httpx.Client, operator: httpx.Client) -> None:
    assert "Nobody is told yet." in admin.get("/channels").text
    assert "/channels/new?kind=slack_bot" in admin.get("/channels").text
    assert "/channels/new" not in operator.get("/channels").text


def test_a_channel_is_made_by_the_form(
    admin: httpx.Client, house: RunningServer, channel: str
) -> None:
    made = kept(admin, house, channel)

    assert made["topics"] == ["opened", "resolved"]
    assert made["matchers"] == [{"field": "job", "pattern": "gpt-*"}]
    assert (made["after_s"], made["remind_s"]) == (900, 1800)
    assert made["is_enabled"]


def test_a_secret_is_on_no_page(admin: httpx.Client, channel: str) -> None:
    pages = [admin.get(path).text for path in ("/channels", channel, "/settings/audit")]

    assert not [page for page in pages if KEY in page or "/hook" in page]
    assert "set: leave empty to keep it" in pages[1]


def test_saving_without_secrets_keeps_them(
    admin: httpx.Client, house: RunningServer, receiver: Receiver, channel: str
) -> None:
    changes = {"secret-url": "", "secret-signing_key": "", "name": "machines"}

    answer = admin.post(channel, data=form(admin, receiver, **changes))
    tested = admin.post(f"{channel}/test", data={"csrf_token": csrf(admin)})

    assert answer.status_code == 303
    assert kept(admin, house, channel)["name"] == "machines"
    assert "arrived" in tested.text


def test_the_test_answers_in_place_where_a_script_asks(
    admin: httpx.Client, receiver: Receiver, channel: str
) -> None:
    receiver.answer(500, "out of paper")
    body = {"csrf_token": csrf(admin)}

    answer = admin.post(f"{channel}/test", data=body, headers={"hx-request": "true"})
    receiver.answer(200)

    assert "<html" not in answer.text
    assert "the receiver answered 500: out of paper" in answer.text


def test_what_cannot_be_kept_is_said_above_what_was_typed(
    admin: httpx.Client, receiver: Receiver
) -> None:
    body = form(admin, receiver, **{"secret-signing_key": "weak", "remind": "soon"})

    wrong_time = admin.post("/channels/new?kind=webhook", data=body)
    wrong_key = admin.post("/channels/new?kind=webhook", data={**body, "remind": "30"})

    assert wrong_time.status_code == wrong_key.status_code == 422
    assert "number of minutes" in wrong_time.text
    assert "is not a signing key" in wrong_key.text
    assert 'value="gpt-*"' in wrong_key.text
    assert "weak" not in wrong_key.text


def test_a_form_from_elsewhere_changes_nothing(
    admin: httpx.Client, receiver: Receiver, channel: str
) -> None:
    forged = form(admin, receiver, csrf_token="0" * 64)

    assert admin.post("/channels/new?kind=webhook", data=forged).status_code == 403
    assert admin.post(f"{channel}/delete", data={"csrf_token": ""}).status_code == 403
    assert admin.get(channel).status_code == 200


def test_a_channel_that_is_off_says_so_on_the_list(
    admin: httpx.Client, receiver: Receiver, channel: str
) -> None:
    body = form(admin, receiver)
    del body["is_enabled"]

    admin.post(channel, data=body)

    assert "nobody is told: switched off" in admin.get("/channels").text


def test_a_silence_is_planned_shown_and_cancelled(operator: httpx.Client) -> None:
    body = {
        "csrf_token": csrf(operator),
        "match-field": "node",
        "match-pattern": "rack4-*",
        "starts": "2031-01-01T06:00",
        "length": "4h",
        "repeat": "weekly",
        "comment": "storage upgrade",
    }

    made = operator.post("/silences", data=body)
    listed = operator.get("/silences").text
    identifier = made.headers["location"].partition("#silence-")[2]
    operator.post(f"/silences/{identifier}/cancel", data={"csrf_token": csrf(operator)})

    assert made.status_code == 303
    assert "rack4-*" in listed
    assert "every week" in listed
    assert "2031-01-01 06:00:00 UTC" in listed
    assert f"/silences/{identifier}/cancel" not in operator.get("/silences").text


def test_a_silence_of_nothing_is_refused_and_what_was_typed_stays(operator: httpx.Client) -> None:
    body = {"csrf_token": csrf(operator), "length": "4h", "comment": "storage upgrade"}

    answer = operator.post("/silences", data=body)

    assert answer.status_code == 422
    assert "needs a matcher" in answer.text
    assert 'value="storage upgrade"' in answer.text


def test_the_preview_counts_without_keeping_anything(operator: httpx.Client) -> None:
    body = {"csrf_token": csrf(operator), "match-field": "job", "match-pattern": "*"}

    answer = operator.post("/silences/preview", data=body)

    assert "No incident is open now." in answer.text
    assert "Nothing is silenced." in operator.get("/silences").text


def test_an_address_fills_in_what_a_silence_is_to_match(operator: httpx.Client) -> None:
    assert 'value="gpt-7b"' in operator.get("/silences?job=gpt-7b").text


def test_the_log_teaches_while_it_is_empty(admin: httpx.Client) -> None:
    assert "Nothing was sent yet." in admin.get("/deliveries").text
    assert "No delivery matches." in admin.get("/deliveries?state=failed").text


@pytest.mark.parametrize("path", ["/incidents/x/acknowledge", "/incidents/x/snooze"])
def test_a_link_of_an_alert_leads_through_the_login_and_back(
    house: RunningServer, path: str
) -> None:
    with house.client("") as nobody:
        answer = nobody.get(f"{path}?minutes=60", headers={"accept": "text/html"})

    assert answer.status_code == 303
    assert "next=%2Fincidents%2Fx%2F" in answer.headers["location"]
    assert "minutes" in answer.headers["location"]
