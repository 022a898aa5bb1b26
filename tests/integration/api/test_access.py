"""Who may call what: tokens, scopes, browser sessions and their protection."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

PROTECTED = [
    ("GET", "/api/v1/jobs", "read"),
    ("GET", "/api/v1/incidents", "read"),
    ("GET", "/api/v1/nodes", "read"),
    ("GET", "/api/v1/events", "read"),
    ("GET", "/metrics", "read"),
    ("POST", "/api/v1/jobs/x/captures", "operate"),
    ("POST", "/api/v1/jobs/x/hold", "operate"),
    ("POST", "/api/v1/incidents/x/acknowledge", "operate"),
    ("POST", "/api/v1/incidents/x/snooze", "operate"),
    ("GET", "/api/v1/channels", "operate"),
    ("POST", "/api/v1/channels", "admin"),
    ("PATCH", "/api/v1/channels/x", "admin"),
    ("DELETE", "/api/v1/channels/x", "admin"),
    ("POST", "/api/v1/channels/x/test", "admin"),
    ("GET", "/api/v1/tokens", "admin"),
    ("POST", "/api/v1/tokens", "admin"),
    ("DELETE", "/api/v1/tokens/x", "admin"),
    ("DELETE", "/api/v1/jobs/x", "admin"),
    ("GET", "/api/v1/audit", "admin"),
]
LESS = {"read": "agent", "operate": "read", "admin": "operate"}


@pytest.fixture(scope="session")
def weaker(api_server: RunningServer) -> dict[str, str]:
    """For each scope, a token that has the next weaker one."""
    node = {"agent": "node-of-no-one"}
    return {needed: api_server.new_token(scope, node.get(scope)) for needed, scope in LESS.items()}


@pytest.mark.parametrize(("method", "path", "_scope"), PROTECTED)
def test_without_a_token_nothing_is_told(
    api_server: RunningServer, method: str, path: str, _scope: str
) -> None:
    with api_server.client("") as nobody:
        answer = nobody.request(method, path)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "hangwatch token create" in answer.json()["detail"]


@pytest.mark.parametrize(("method", "path", "_scope"), PROTECTED)
def test_a_wrong_token_is_refused(
    api_server: RunningServer, method: str, path: str, _scope: str
) -> None:
    with api_server.client("hw_00000000_wrong") as stranger:
        assert stranger.request(method, path).status_code == 401


@pytest.mark.parametrize(("method", "path", "scope"), PROTECTED)
def test_a_token_without_the_scope_is_refused(
    api_server: RunningServer, weaker: dict[str, str], method: str, path: str, scope: str
) -> None:
    with api_server.client(weaker[scope]) as client:
        answer = client.request(method, path)

    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:hangwatch:forbidden"
    assert f"scope {scope}" in answer.json()["detail"]


def test_another_authorization_scheme_is_refused_in_words(api_server: RunningServer) -> None:
    with api_server.client("") as client:
        answer = client.get("/api/v1/jobs", headers={"authorization": "Basic abc"})

    assert answer.status_code == 401
    assert "Bearer" in answer.json()["detail"]


def test_a_revoked_token_stops_working_at_once(
    api_server: RunningServer, admin: httpx.Client
) -> None:
    body = {"name": "to be revoked", "scopes": ["read"]}
    created = admin.post("/api/v1/tokens", json=body).json()

    with api_server.client(created["token"]) as client:
        assert client.get("/api/v1/jobs").status_code == 200
        assert admin.delete(f"/api/v1/tokens/{created['id']}").status_code == 204
        assert client.get("/api/v1/jobs").status_code == 401


def test_an_agent_token_without_a_node_is_not_made(admin: httpx.Client) -> None:
    answer = admin.post("/api/v1/tokens", json={"name": "a", "scopes": ["agent"]})

    assert answer.status_code == 422
    assert "--node" in answer.json()["detail"]


def test_token_lists_never_show_texts(admin: httpx.Client) -> None:
    text = admin.post("/api/v1/tokens", json={"name": "b", "scopes": ["read"]}).json()["token"]

    listed = admin.get("/api/v1/tokens")

    assert text not in listed.text
    assert any(row["name"] == "b" for row in listed.json()["items"])


def test_who_made_and_revoked_tokens_is_on_record(admin: httpx.Client) -> None:
    created = admin.post("/api/v1/tokens", json={"name": "c", "scopes": ["read"]}).json()
    admin.delete(f"/api/v1/tokens/{created['id']}")

    rows = admin.get("/api/v1/audit", params={"limit": 2}).json()["items"]

    assert [row["action"] for row in rows] == ["token.revoke", "token.create"]
    assert {row["subject"] for row in rows} == {f"token:{created['id']}"}
    assert {row["who"] for row in rows} == {"admin"}


def test_a_page_without_a_session_leads_to_the_login(api_server: RunningServer) -> None:
    with api_server.client("") as browser:
        answer = browser.get("/?q=a", headers={"accept": "text/html"})

    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2F%3Fq%3Da"


def test_login_gives_a_session_that_reads(api_server: RunningServer) -> None:
    with api_server.client("") as browser:
        form = {"token": api_server.admin_token, "next": "/nodes"}
        answer = browser.post("/login", data=form)
        cookie = answer.headers["set-cookie"].lower()

        assert (answer.status_code, answer.headers["location"]) == (303, "/nodes")
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert api_server.admin_token.lower() not in cookie
        assert browser.get("/api/v1/jobs").status_code == 200


def test_login_with_a_wrong_token_says_so(api_server: RunningServer) -> None:
    with api_server.client("") as browser:
        answer = browser.post("/login", data={"token": "hw_no"})

    assert answer.status_code == 401
    assert "not known" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_login_never_leads_to_another_site(api_server: RunningServer, target: str) -> None:
    with api_server.client("") as browser:
        form = {"token": api_server.admin_token, "next": target}
        assert browser.post("/login", data=form).headers["location"] == "/"


def test_login_from_a_foreign_page_is_refused(api_server: RunningServer) -> None:
    with api_server.client("") as browser:
        form = {"token": api_server.admin_token}
        answer = browser.post("/login", data=form, headers={"origin": "https://evil.example"})

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.fixture
def browser(api_server: RunningServer) -> Iterator[httpx.Client]:
    with api_server.client("") as client:
        client.post("/login", data={"token": api_server.admin_token})
        yield client


def csrf_token(browser: httpx.Client) -> str:
    page = browser.get("/", headers={"accept": "text/html"}).text
    return page.split('name="csrf_token" value="')[1].split('"')[0]


def test_a_session_cannot_change_anything_without_the_pages_token(browser: httpx.Client) -> None:
    answer = browser.post("/api/v1/tokens", json={"name": "d", "scopes": ["read"]})

    assert answer.status_code == 403
    assert "reload the page" in answer.json()["detail"]


def test_a_session_with_the_pages_token_may_change_things(browser: httpx.Client) -> None:
    headers = {"x-csrf-token": csrf_token(browser), "origin": str(browser.base_url)}
    body = {"name": "e", "scopes": ["read"]}

    assert browser.post("/api/v1/tokens", json=body, headers=headers).status_code == 201


def test_even_with_the_pages_token_a_foreign_origin_is_refused(browser: httpx.Client) -> None:
    headers = {"x-csrf-token": csrf_token(browser), "origin": "https://evil.example"}
    body = {"name": "f", "scopes": ["read"]}

    assert browser.post("/api/v1/tokens", json=body, headers=headers).status_code == 403


def test_logout_by_the_pages_form_ends_the_session(browser: httpx.Client) -> None:
    answer = browser.post("/logout", data={"csrf_token": csrf_token(browser)})

    assert answer.status_code == 303
    assert browser.get("/api/v1/jobs").status_code == 401


def test_a_forged_session_is_nobody(api_server: RunningServer) -> None:
    with api_server.client("") as browser:
        browser.cookies.set("hangwatch_session", "eyJzZWNyZXRfaGFzaCI6ICIxIn0=.00")
        assert browser.get("/api/v1/jobs").status_code == 401
