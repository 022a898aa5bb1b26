"""Signing in by a proxy's headers: believed from that proxy alone, and as long as it says so."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.integration.access.conftest import PROXY, client_from
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

ADA = {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "oncall, sre"}


def test_whom_the_proxy_names_is_signed_in_on_the_way_to_a_page(server: RunningServer) -> None:
    with client_from(server, PROXY, ADA) as browser:
        browser.follow_redirects = True
        answer = browser.get("/settings")

    assert answer.status_code == 200
    assert "Signed in as proxy:ada" in answer.text


def test_the_same_headers_from_anybody_else_are_nothing(server: RunningServer) -> None:
    with client_from(server, headers=ADA) as browser:
        assert browser.get("/settings").status_code == 303
        assert browser.get("/login").status_code == 200
        assert not browser.cookies


def test_a_name_that_a_client_smuggled_past_the_proxy_beside_its_own_is_nobodys(
    server: RunningServer,
) -> None:
    smuggled = [("X-Forwarded-User", "root"), *ADA.items()]
    with client_from(server, PROXY) as browser:
        assert browser.get("/login", headers=smuggled).status_code == 200
        assert not browser.cookies


def test_headers_alone_open_no_call(server: RunningServer) -> None:
    with client_from(server, PROXY, {**ADA, "accept": "application/json"}) as client:
        assert client.get("/api/v1/jobs").status_code == 401


def test_a_session_holds_only_while_the_proxy_says_the_same_name(server: RunningServer) -> None:
    with client_from(server, PROXY, ADA) as browser:
        browser.get("/login")
        cookies = dict(browser.cookies)
        assert browser.get("/").status_code == 200
        browser.headers["X-Forwarded-User"] = "grace"
        assert browser.get("/").status_code == 303

    with client_from(server, headers=ADA) as past_the_proxy:
        past_the_proxy.cookies.update(cookies)
        assert past_the_proxy.get("/").status_code == 303


def test_who_is_in_no_group_is_told_so(server: RunningServer) -> None:
    with client_from(server, PROXY, {"X-Forwarded-User": "eve"}) as browser:
        answer = browser.get("/login")

    assert answer.status_code == 403
    assert "is in no group that may use Hangwatch" in answer.text


def test_csrf_holds_behind_a_proxy_too(server: RunningServer) -> None:
    form = {"name": "x", "scope": "read"}
    with client_from(server, PROXY, ADA) as browser:
        browser.get("/login")
        assert browser.post("/settings/tokens", data=form).status_code == 403
        page = browser.get("/settings/tokens").text
        token = re.search(r'name="csrf_token" value="([0-9a-f]+)"', page)
        assert token is not None
        answer = browser.post("/settings/tokens", data={**form, "csrf_token": token[1]})

    assert answer.status_code == 201


def test_who_signs_out_stays_out_until_they_ask(server: RunningServer) -> None:
    with client_from(server, PROXY, ADA) as browser:
        browser.get("/login")
        page = browser.get("/").text
        token = re.search(r'name="csrf_token" value="([0-9a-f]+)"', page)
        assert token is not None
        out = browser.post("/logout", data={"csrf_token": token[1]})

        after = browser.get(out.headers["location"])

        assert "You are signed out" in after.text
        assert browser.get("/").status_code == 303


def test_over_https_at_the_proxy_the_cookie_is_for_https_alone(server: RunningServer) -> None:
    with client_from(server, PROXY, {**ADA, "X-Forwarded-Proto": "https"}) as browser:
        answer = browser.get("/login")

    assert answer.headers["set-cookie"].startswith("__Host-hangwatch_session=")
    assert "secure" in answer.headers["set-cookie"].lower()
    assert "max-age" in answer.headers["strict-transport-security"]


def test_the_address_that_the_proxy_forwards_is_the_one_on_record(
    server: RunningServer, admin: httpx.Client
) -> None:
    with client_from(server, PROXY, {**ADA, "X-Forwarded-For": "203.0.113.77"}) as browser:
        browser.get("/login")

    newest = admin.get("/api/v1/sessions", params={"limit": 1}).json()["items"][0]
    assert (newest["who"], newest["address"]) == ("proxy:ada", "203.0.113.77")
