"""Signing in by an identity provider: a real one over HTTP, right and wrong in many ways."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import OctKey, RSAKey
from tests.integration.access.conftest import client_from
from tests.support import identity_provider
from tests.support.identity_provider import IdentityProvider
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration


def sign_in(browser: httpx.Client, next_page: str = "/") -> httpx.Response:
    """Through the provider and back; the answer to the way back."""
    begun = browser.get("/login/oidc", params={"next": next_page})
    assert begun.status_code == 303, begun.text
    at_provider = httpx.get(begun.headers["location"])
    return browser.get(at_provider.headers["location"])


def test_a_person_signs_in_and_lands_where_they_wanted_to(
    browser: httpx.Client, provider: IdentityProvider
) -> None:
    answer = sign_in(browser, "/incidents?state=open")

    assert (answer.status_code, answer.headers["location"]) == (303, "/incidents?state=open")
    page = browser.get("/").text
    assert "Signed in as oidc:ada@example.org" in page
    assert browser.get("/settings").status_code == 403


@pytest.mark.parametrize(
    ("groups", "settings_page", "front"),
    [(["sre"], 200, 200), (["readers"], 403, 200), ("sre", 200, 200)],
)
def test_the_groups_of_the_provider_give_the_role(
    browser: httpx.Client,
    provider: IdentityProvider,
    groups: object,
    settings_page: int,
    front: int,
) -> None:
    provider.reset(groups=groups)

    sign_in(browser)

    assert browser.get("/").status_code == front
    assert browser.get("/settings").status_code == settings_page


def test_groups_may_come_from_userinfo(browser: httpx.Client, provider: IdentityProvider) -> None:
    provider.reset(groups=None)
    provider.userinfo = {"sub": "1017", "groups": ["sre"]}

    assert sign_in(browser).status_code == 303
    assert browser.get("/settings").status_code == 200


def test_who_is_in_no_group_gets_in_nowhere_and_is_told_why(
    browser: httpx.Client, provider: IdentityProvider
) -> None:
    provider.reset(groups=["marketing"])

    answer = sign_in(browser)

    assert answer.status_code == 403
    assert "in no group that may use Hangwatch" in answer.text
    assert browser.get("/").status_code == 303


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("another issuer", {"iss": "https://evil.example"}),
    ("another audience", {"aud": "another-application"}),
    ("another sign-in", {"nonce": "replayed"}),
    ("no nonce", {"nonce": None}),
    ("expired", {"exp": int(time.time()) - 3600}),
    ("no expiry", {"exp": None}),
    ("no subject", {"sub": None}),
    ("another party", {"aud": identity_provider.CLIENT_ID, "azp": "another-application"}),
]


@pytest.mark.parametrize(("_what", "claims"), WRONG, ids=[what for what, _ in WRONG])
def test_an_identity_that_is_not_for_this_sign_in_is_refused(
    browser: httpx.Client, provider: IdentityProvider, _what: str, claims: dict[str, Any]
) -> None:
    provider.reset(**claims)

    answer = sign_in(browser)

    assert answer.status_code == 401
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("none", None),
        ("RS256", RSAKey.generate_key(2048, {"kid": "one"})),
        ("HS256", OctKey.import_key(identity_provider.CLIENT_SECRET, {"kid": "one"})),
    ],
)
def test_an_identity_that_the_provider_did_not_sign_is_refused(
    browser: httpx.Client, provider: IdentityProvider, algorithm: str, key: RSAKey | OctKey | None
) -> None:
    provider.algorithm, provider.signs_with = algorithm, key

    assert sign_in(browser).status_code == 401


def test_a_provider_that_changes_its_keys_is_asked_for_them(
    browser: httpx.Client, provider: IdentityProvider
) -> None:
    sign_in(browser)
    provider.key = RSAKey.generate_key(2048, {"kid": "two"})

    assert sign_in(browser).status_code == 303


def test_a_sign_in_begun_elsewhere_cannot_be_ended_here(
    server: RunningServer, browser: httpx.Client, provider: IdentityProvider
) -> None:
    begun = browser.get("/login/oidc")
    back = httpx.get(begun.headers["location"]).headers["location"]

    with client_from(server) as victim:
        without_cookie = victim.get(back)
        victim.get("/login/oidc")
        with_own_cookie = victim.get(back)

    assert (without_cookie.status_code, with_own_cookie.status_code) == (401, 401)
    assert "begun in another browser" in with_own_cookie.text


def test_a_code_is_good_once(browser: httpx.Client, provider: IdentityProvider) -> None:
    begun = browser.get("/login/oidc")
    cookie = browser.cookies["hangwatch_sign_in"]
    back = httpx.get(begun.headers["location"]).headers["location"]
    assert browser.get(back).status_code == 303

    browser.cookies.clear()
    browser.cookies.set("hangwatch_sign_in", cookie)

    assert browser.get(back).status_code == 401


def test_what_the_provider_is_told_gives_nothing_away(
    browser: httpx.Client, provider: IdentityProvider
) -> None:
    begun = browser.get("/login/oidc")

    asked = parse_qs(urlsplit(begun.headers["location"]).query)
    secret = browser.cookies["hangwatch_sign_in"].partition(".")[0]
    assert secret not in begun.headers["location"]
    assert len({asked[name][0] for name in ("state", "nonce", "code_challenge")}) == 3
    flags = begun.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=lax" in flags


def test_the_provider_never_leads_to_another_site(
    browser: httpx.Client, provider: IdentityProvider
) -> None:
    assert sign_in(browser, "//evil.example").headers["location"] == "/"


def test_a_refusal_of_the_provider_is_shown_as_text(
    browser: httpx.Client, provider: IdentityProvider
) -> None:
    provider.denies = "<script>alert(1)</script>"

    answer = sign_in(browser)

    assert answer.status_code == 401
    assert "<script>alert" not in answer.text


def test_an_administrator_ends_the_session_of_a_person_who_has_no_token(
    browser: httpx.Client, admin: httpx.Client, provider: IdentityProvider
) -> None:
    provider.reset(email="grace@example.org")
    sign_in(browser)
    sessions = admin.get("/api/v1/sessions").json()["items"]
    mine = next(row for row in sessions if row["who"] == "oidc:grace@example.org")
    assert (mine["kind"], mine["role"]) == ("oidc", "operator")

    assert admin.delete(f"/api/v1/sessions/{mine['id']}").status_code == 204

    assert browser.get("/").status_code == 303
    row = admin.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]
    assert (row["action"], row["detail"]) == ("session.end", "oidc:grace@example.org")


def test_what_a_signed_in_person_does_is_on_record_under_their_name(
    browser: httpx.Client, admin: httpx.Client, provider: IdentityProvider
) -> None:
    provider.reset(groups=["sre"])
    sign_in(browser)
    page = browser.get("/settings/tokens").text
    token = re.search(r'name="csrf_token" value="([0-9a-f]+)"', page)
    assert token is not None

    form = {"csrf_token": token[1], "name": "of a person", "scope": "read"}
    assert browser.post("/settings/tokens", data=form).status_code == 201

    row = admin.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]
    assert (row["who"], row["action"]) == ("oidc:ada@example.org", "token.create")


def test_the_login_page_offers_the_provider(browser: httpx.Client) -> None:
    assert 'href="/login/oidc?next=/"' in browser.get("/login").text
