"""Cross-site requests: no unsafe route does anything for a cookie alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from tests.support import routes
from tests.support.running_server import RunningServer

from hangwatch_server.app import create_app
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.integration

# The login rests on no cookie, and refuses foreign pages by itself; agents have no cookies.
WITHOUT_SESSION = {"/login"}
UNSAFE = [
    one
    for one in routes.every(create_app(ServerSettings()))
    if not one.is_safe and one.path not in WITHOUT_SESSION
]
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.fixture(scope="module")
def session(server: RunningServer) -> Iterator[httpx.Client]:
    """An administrator's browser."""
    with server.client("") as client:
        client.post("/login", data={"token": server.admin_token})
        yield client


@pytest.fixture(scope="module")
def csrf(session: httpx.Client) -> str:
    found = re.search(r'name="csrf_token" value="([0-9a-f]+)"', session.get("/").text)
    assert found is not None
    return found[1]


def _path(one: routes.Found) -> str:
    return re.sub(r"{[^}]+}", "nope", one.path)


@pytest.mark.parametrize("one", UNSAFE, ids=lambda one: f"{one.method} {one.path}")
def test_a_cookie_alone_changes_nothing(
    session: httpx.Client, csrf: str, one: routes.Found
) -> None:
    path = _path(one)
    without_text = session.request(one.method, path)
    with_wrong_text = session.request(one.method, path, headers={"x-csrf-token": "0" * 64})
    from_elsewhere = [
        session.request(one.method, path, headers={"x-csrf-token": csrf, **headers})
        for headers in FOREIGN
    ]

    refused = [without_text, with_wrong_text, *from_elsewhere]
    assert {answer.status_code for answer in refused} == {403}


@pytest.mark.parametrize("one", UNSAFE, ids=lambda one: f"{one.method} {one.path}")
def test_the_pages_own_text_opens_the_way(
    session: httpx.Client, csrf: str, one: routes.Found
) -> None:
    if one.path == "/logout":
        pytest.skip("it would end the session of the other tests; see test_sessions")

    answer = session.request(one.method, _path(one), headers={"x-csrf-token": csrf})

    assert answer.status_code in (200, 400, 404, 409, 422)


def test_no_reading_route_changes_anything_by_being_read() -> None:
    """A link or a picture of a foreign page reads with the cookie: what reads must only read."""
    verbs = re.compile(r"/(end|delete|revoke|acknowledge|snooze|comments|test|redeliver)$")
    reading = [one for one in routes.every(create_app(ServerSettings())) if one.method == "GET"]

    asking_first = {one.path for one in reading if verbs.search(one.path)}

    posts = {one.path for one in UNSAFE if one.method == "POST"}
    assert asking_first <= posts, "a GET with the name of an action is the page that asks first"
