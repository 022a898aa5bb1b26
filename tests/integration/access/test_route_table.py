"""Every route by every role: what each is answered. A route that is not in the table fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.integration.access.teams import Team
from tests.support import routes
from tests.support.running_server import RunningServer

from hangwatch_server.app import create_app
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.integration

TABLE = Path(__file__).with_name("routes.txt")
# In the order of the columns. The last two have a token for the jobs named `llm-*`, and ask for
# what is theirs and for what is another team's.
ROLES = ("nobody", "agent", "enrol", "viewer", "operator", "admin", "own", "other's")
NONE_OF_OURS = frozenset({"WS", "FILES"})  # see tests of the stream and of static files


@dataclass(frozen=True)
class Row:
    method: str
    path: str
    statuses: tuple[int, ...]


def rows() -> Iterator[Row]:
    for line in TABLE.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            method, path, *statuses = line.split()
            yield Row(method, path, tuple(int(status) for status in statuses))


ROWS = list(rows())


def test_no_route_is_missing_from_the_table() -> None:
    app = create_app(ServerSettings())
    known = {(row.method, row.path) for row in ROWS}

    found = {(one.method, one.path) for one in routes.every(app) if one.method not in NONE_OF_OURS}

    assert found - known == set(), "add it to routes.txt, with what each role is answered"
    assert known - found == set(), "it is gone: take it out of routes.txt"


@pytest.fixture(scope="module")
def callers(server: RunningServer) -> Iterator[dict[str, httpx.Client]]:
    """A client per role, the last two with a token that is limited to some jobs."""
    bodies = {
        "agent": {"scopes": ["agent"], "node": "node-of-the-table"},
        "enrol": {"scopes": ["enrol"], "nodes": "none-*"},
        "viewer": {"scopes": ["read"]},
        "operator": {"scopes": ["operate"]},
        "admin": {"scopes": ["admin"]},
        "own": {"scopes": ["operate"], "jobs": "llm-*"},
    }
    made: dict[str, httpx.Client] = {"nobody": server.client("")}
    with server.client() as admin:
        for role, body in bodies.items():
            answer = admin.post("/api/v1/tokens", json={"name": f"{role} of a table", **body})
            made[role] = server.client(answer.json()["token"])
    made["other's"] = made["own"]
    yield made
    for client in made.values():
        client.close()


def asked(client: httpx.Client, method: str, path: str) -> int:
    """The status of an answer, whose body may have no end."""
    headers = {} if path.startswith("/api/") else {"accept": "text/html"}
    body = {} if method in routes.SAFE else {"content": b"", "headers": headers}
    with client.stream(method, path, **{"headers": headers, **body}) as answer:  # type: ignore[arg-type]
        return answer.status_code


def path_of(row: Row, team: Team, *, is_spared: bool) -> str:
    """With the team's own ids, or with those of nothing that is there."""
    ids = {"name": team.name, "gid": "nope", "rank": "5"}
    kinds = ("token", "session", "channel", "delivery", "silence")
    ids |= {f"{kind}_id": "nope" for kind in kinds}
    spared = {"job_id": "nope", "incident_id": "nope", "capture_id": "nope"}
    known = {"job_id": team.job, "incident_id": team.incident, "capture_id": team.capture}
    template = row.path.replace(":path}", "}")
    return template.format_map({**ids, **(spared if is_spared else known)})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_each_role_is_answered_as_the_table_says(
    row: Row, callers: dict[str, httpx.Client], teams: dict[str, Team]
) -> None:
    statuses = []
    for role in ROLES:
        team = teams["vision" if role == "other's" else "llm"]
        # What changes something is asked of what is not there: the next row needs the rest.
        is_spared = row.method not in routes.SAFE and role not in ("own", "other's")
        path = path_of(row, team, is_spared=is_spared)
        statuses.append(asked(callers[role], row.method, path))

    assert dict(zip(ROLES, statuses, strict=True)) == dict(zip(ROLES, row.statuses, strict=True))


SHOWN_TO_ALL = {"/openapi.json", "/healthz", "/readyz", "/login", "/login/oidc", "/login/oidc/back"}
OPEN_TO_TEAMS = [
    row
    for row in ROWS
    if row.method == "GET" and row.statuses[-2] == 200 and row.path not in SHOWN_TO_ALL
]


def body_of(client: httpx.Client, path: str) -> str:
    """A whole answer; of an event stream what it begins with."""
    headers = {} if path.startswith("/api/") else {"accept": "text/html"}
    text = ""
    with client.stream("GET", path, headers=headers) as answer:
        for piece in answer.iter_text():
            text += piece
            if "event: beat" in text or len(text) > 1_000_000:
                break
    return text


@pytest.mark.parametrize("row", OPEN_TO_TEAMS, ids=lambda row: row.path)
def test_nothing_of_another_team_is_in_any_answer(
    row: Row, callers: dict[str, httpx.Client], teams: dict[str, Team]
) -> None:
    other = teams["vision"]
    secrets = (other.name, other.mark, other.job, other.incident, other.capture, other.earlier)

    text = body_of(callers["own"], path_of(row, teams["llm"], is_spared=False))

    assert [secret for secret in secrets if secret in text] == []


def test_what_is_kept_from_one_team_is_shown_to_who_may_see_all(
    callers: dict[str, httpx.Client], teams: dict[str, Team]
) -> None:
    for path in ("/api/v1/jobs", "/api/v1/incidents", "/", "/incidents"):
        assert teams["vision"].name in body_of(callers["viewer"], path)
        assert teams["llm"].name in body_of(callers["own"], path)


def test_neither_search_nor_filters_reach_another_teams_jobs(
    callers: dict[str, httpx.Client], teams: dict[str, Team]
) -> None:
    own, other = callers["own"], teams["vision"]
    asked_for = [
        f"/api/v1/jobs?q={other.name}",
        f"/api/v1/jobs?q={other.job}",
        f"/api/v1/incidents?job={other.job}",
        f"/api/v1/incidents?node={other.mark}-node",
    ]

    assert [own.get(path).json()["items"] for path in asked_for] == [[]] * 4


@pytest.mark.parametrize("subject", ["job", "incident", "capture"])
def test_events_are_heard_of_ones_own_alone(
    callers: dict[str, httpx.Client], teams: dict[str, Team], subject: str
) -> None:
    own, other = (getattr(teams[name], subject) for name in ("llm", "vision"))

    assert asked(callers["own"], "GET", f"/api/v1/events?{subject}={own}") == 200
    assert asked(callers["own"], "GET", f"/api/v1/events?{subject}={other}") == 404
    both = f"/api/v1/events?{subject}={own}&job={teams['vision'].job}"
    assert asked(callers["own"], "GET", both) == 404


def test_a_capture_is_not_compared_with_another_teams(
    callers: dict[str, httpx.Client], teams: dict[str, Team]
) -> None:
    own, other = teams["llm"], teams["vision"]
    for path in (f"/api/v1/captures/{own.capture}/compare", f"/captures/{own.capture}/compare"):
        answers = [
            callers["own"].get(f"{path}?before={one}") for one in (own.earlier, other.earlier)
        ]
        assert [answer.status_code for answer in answers] == [200, 404]


def test_what_is_not_there_and_what_is_not_yours_are_told_apart_by_nobody(
    callers: dict[str, httpx.Client], teams: dict[str, Team]
) -> None:
    other = teams["vision"]
    for template, known in (
        ("/api/v1/jobs/{}", other.job),
        ("/api/v1/jobs/by-name/{}", other.name),
        ("/api/v1/incidents/{}", other.incident),
        ("/api/v1/captures/{}", other.capture),
    ):
        theirs, nobodys = (callers["own"].get(template.format(one)) for one in (known, "nope"))

        assert theirs.status_code == nobodys.status_code == 404
        assert theirs.json()["detail"].replace(known, "nope") == nobodys.json()["detail"]
