"""What a cookie proves, and what a page must send back with it."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import Response

from hangwatch_server.security import sessions


def _request(scheme: str = "http", **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "scheme": scheme, "headers": raw, "server": ("hw", 80), "path": "/"}
    return Request({**scope, "method": "POST", "query_string": b""})


def test_csrf_text_belongs_to_one_cookie() -> None:
    text = sessions.csrf_text("one")

    assert sessions.is_csrf_text("one", text)
    assert not sessions.is_csrf_text("another", text)
    assert not sessions.is_csrf_text("one", "")
    assert not sessions.is_csrf_text("one", "é" * 64)


@pytest.mark.parametrize(
    ("headers", "is_same"),
    [
        ({"host": "hw"}, True),
        ({"host": "hw", "origin": "http://hw"}, True),
        ({"host": "hw", "origin": "http://evil.example"}, False),
        ({"host": "hw", "origin": "null"}, False),
        ({"host": "hw", "sec_fetch_site": "cross-site"}, False),
        ({"host": "hw", "sec_fetch_site": "same-site"}, False),
        ({"host": "hw", "sec_fetch_site": "none"}, True),
    ],
)
def test_only_our_own_pages_are_of_the_same_origin(headers: dict[str, str], is_same: bool) -> None:
    assert sessions.is_same_origin(_request(**headers)) is is_same


def test_over_https_only_the_cookie_that_no_other_host_can_set_is_read() -> None:
    cookie = "hangwatch_session=planted"

    assert sessions.cookie_of(_request(cookie=cookie)) == "planted"
    assert sessions.cookie_of(_request("https", cookie=cookie)) == ""
    assert sessions.cookie_of(_request("https", cookie=f"__Host-{cookie}")) == "planted"


def test_the_cookie_over_https_is_for_this_host_and_https_alone() -> None:
    response = Response()

    sessions.set_cookie(_request("https"), response, "secret", 60)

    flags = response.headers["set-cookie"].lower()
    assert flags.startswith("__host-hangwatch_session=secret;")
    for flag in ("secure", "httponly", "path=/", "samesite=lax", "max-age=60"):
        assert flag in flags
    assert "domain" not in flags
