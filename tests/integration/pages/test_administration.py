"""Administration pages on a real server: for admins alone, behind forgery tokens, with an audit."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

PAGES = ("/settings", "/settings/tokens", "/settings/audit")
_CSRF = re.compile(r'name="csrf_token" value="([0-9a-f]+)"')


def _csrf(client: httpx.Client, path: str = "/settings/tokens") -> str:
    match = _CSRF.search(client.get(path).text)
    assert match is not None
    return match[1]


def _made(client: httpx.Client, **form: str) -> tuple[str, str]:
    """A new token's text and id."""
    body = {"csrf_token": _csrf(client), "name": "ci", "scope": "read", **form}
    answer = client.post("/settings/tokens", data=body)
    assert answer.status_code == 201, answer.text
    found = re.search(r"hw_[0-9a-f]{8}_[A-Za-z0-9_-]+", answer.text)
    assert found is not None
    rows = client.get("/settings/tokens").text
    at = rows.index(found[0][:11])
    ids = re.findall(r'id="token-([0-9a-f]+)"', rows[:at])
    return found[0], ids[-1]


@pytest.mark.parametrize("path", [*PAGES, "/jobs/x/delete", "/settings/tokens/x/revoke"])
def test_an_operator_is_refused(operator: httpx.Client, path: str) -> None:
    answer = operator.get(path)

    assert answer.status_code == 403
    assert "needs the scope admin" in answer.text


@pytest.mark.parametrize("path", PAGES)
def test_nobody_is_sent_to_the_login(house: RunningServer, path: str) -> None:
    with house.client("") as nobody:
        answer = nobody.get(path, headers={"accept": "text/html"})

    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=%2Fsettings")


def test_only_an_admin_is_shown_the_way_to_the_settings(
    admin: httpx.Client, operator: httpx.Client
) -> None:
    assert 'href="/settings"' in admin.get("/").text
    assert 'href="/settings"' not in operator.get("/").text


def test_settings_say_where_they_come_from_and_hide_secrets(admin: httpx.Client) -> None:
    page = admin.get("/settings").text

    assert "flag --port" in page
    assert "environment HANGWATCH_DATABASE_URL" in page
    assert "********" in page
    assert "postgresql+psycopg://" not in page
    assert "days that jobs, incidents and captures are kept" in page


def test_the_api_tells_the_same_settings(house: RunningServer) -> None:
    with house.client() as client:
        rows = {row["key"]: row for row in client.get("/api/v1/settings").json()["items"]}

    assert rows["port"]["source"] == "flag --port"
    assert rows["database_url"]["value"] == "********"
    assert rows["tick_s"]["is_default"]


def test_a_new_token_is_shown_once_and_works(admin: httpx.Client, house: RunningServer) -> None:
    text, _ = _made(admin, name="dashboard <b>")

    with house.client(text) as client:
        assert client.get("/api/v1/jobs").status_code == 200
    listed = admin.get("/settings/tokens").text
    assert text not in listed
    assert text[:11] in listed
    assert "dashboard &lt;b&gt;" in listed


def test_an_agents_token_needs_its_node_and_the_page_says_so(admin: httpx.Client) -> None:
    body = {"csrf_token": _csrf(admin), "name": "agent", "scope": "agent"}

    answer = admin.post("/settings/tokens", data=body)

    assert answer.status_code == 422
    assert "speaks for one node" in answer.text


def test_looking_at_the_question_revokes_nothing(admin: httpx.Client, house: RunningServer) -> None:
    text, identifier = _made(admin)

    question = admin.get(f"/settings/tokens/{identifier}/revoke")

    assert question.status_code == 200
    assert "cannot be undone" in question.text
    with house.client(text) as client:
        assert client.get("/api/v1/jobs").status_code == 200


def test_a_revoked_token_is_refused_and_stands_in_the_audit_trail(
    admin: httpx.Client, house: RunningServer
) -> None:
    text, identifier = _made(admin, name="leaver")

    answer = admin.post(f"/settings/tokens/{identifier}/revoke", data={"csrf_token": _csrf(admin)})

    assert answer.status_code == 303
    with house.client(text) as client:
        assert client.get("/api/v1/jobs").status_code == 401
    assert admin.get(f"/settings/tokens/{identifier}/revoke").status_code == 404
    trail = admin.get("/settings/audit").text
    assert "token.revoke" in trail
    assert "leaver" in trail


@pytest.mark.parametrize(
    "path", ["/settings/tokens", "/settings/tokens/x/revoke", "/jobs/x/delete"]
)
def test_a_form_without_its_forgery_token_is_refused(admin: httpx.Client, path: str) -> None:
    answer = admin.post(path, data={"name": "ci", "scope": "admin"})

    assert answer.status_code == 403
    assert "does not come from a page of this server" in answer.text


def test_a_running_job_is_not_deleted(admin: httpx.Client, job: str) -> None:
    assert admin.get(f"/jobs/{job}/delete").status_code == 409
    body = {"csrf_token": _csrf(admin)}

    answer = admin.post(f"/jobs/{job}/delete", data=body)

    assert answer.status_code == 409
    assert "still runs" in answer.text


def test_the_audit_trail_is_paged(admin: httpx.Client, house: RunningServer) -> None:
    with house.client() as client:
        for number in range(51):
            body = {"name": f"paged {number}", "scopes": ["read"]}
            client.post("/api/v1/tokens", json=body).raise_for_status()

    first = admin.get("/settings/audit").text
    older = re.search(r'href="(/settings/audit\?before=\d+)"', first)

    assert "paged 50" in first
    assert older is not None
    assert "paged 0" in admin.get(older[1]).text
