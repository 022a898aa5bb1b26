"""Enrolment: one token for a cluster, exchanged by each agent for one of its own node."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.support import synthetic_agent, waiting
from tests.support.running_server import RunningServer

from hangwatch_agent import wire
from hangwatch_agent.enrolment import Credentials
from hangwatch_agent.errors import EnrolmentError, RefusedError, SettingsError
from hangwatch_agent.settings import AgentSettings

pytestmark = pytest.mark.integration

Make = Callable[..., dict[str, str]]


@pytest.fixture
def make(admin: httpx.Client) -> Make:
    """A new enrolment token."""

    def made(**limits: object) -> dict[str, str]:
        body = {"name": "cluster", "scopes": ["enrol"], "nodes": "gpu-*", **limits}
        return dict(admin.post("/api/v1/tokens", json=body).raise_for_status().json())

    return made


def enrol(server: RunningServer, token: str, node: str) -> httpx.Response:
    with server.client(token) as client:
        return client.post("/api/v1/agent/enrol", json={"node": node})


def test_an_enrolled_node_speaks_for_itself_alone(server: RunningServer, make: Make) -> None:
    enrolment = make()

    answer = enrol(server, enrolment["token"], "gpu-alone")

    assert answer.status_code == 201
    made = answer.json()
    assert (made["scopes"], made["node"], made["enrolled_by"]) == (
        ["agent"],
        "gpu-alone",
        enrolment["id"],
    )
    with (
        synthetic_agent.beating(server.url, made["token"], "gpu-alone"),
        server.client() as admin,
    ):
        waiting.until(
            lambda: admin.get("/api/v1/nodes/gpu-alone").status_code == 200, 30, "it is known"
        )
    with server.client(made["token"]) as client:
        assert client.get("/api/v1/jobs").status_code == 403
        assert client.post("/api/v1/agent/enrol", json={"node": "gpu-more"}).status_code == 403


def test_a_node_that_the_token_is_not_for_is_refused(server: RunningServer, make: Make) -> None:
    answer = enrol(server, make()["token"], "cpu-1")

    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:hangwatch:not-enrolled"
    assert "'gpu-*'" in answer.json()["detail"]


def test_a_name_that_is_taken_is_not_given_away(server: RunningServer, make: Make) -> None:
    first = enrol(server, make()["token"], "gpu-taken").json()

    again = enrol(server, make()["token"], "gpu-taken")

    assert again.status_code == 409
    assert "--may-replace" in again.json()["detail"]
    with server.client(first["token"]) as client:
        assert client.get("/api/v1/jobs").status_code == 403  # not 401: it is still good


def test_with_an_administrators_leave_a_node_is_enrolled_anew_and_the_old_token_ends(
    server: RunningServer, make: Make
) -> None:
    first = enrol(server, make()["token"], "gpu-anew").json()

    second = enrol(server, make(may_replace=True)["token"], "gpu-anew")

    assert second.status_code == 201
    with server.client(first["token"]) as client:
        assert client.get("/api/v1/jobs").status_code == 401


def test_a_token_enrols_as_many_nodes_as_it_was_made_for(
    server: RunningServer, make: Make, admin: httpx.Client
) -> None:
    enrolment = make(uses=3)
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(
            lambda number: enrol(server, enrolment["token"], f"gpu-race-{number}"), range(8)
        )

    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [201] * 3 + [403] * 5
    rows = admin.get("/api/v1/tokens").json()["items"]
    left = next(row["uses_left"] for row in rows if row["id"] == enrolment["id"])
    assert left == 0


def test_one_name_is_won_by_one_of_those_who_ask_together(
    server: RunningServer, make: Make
) -> None:
    tokens = [make()["token"] for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda token: enrol(server, token, "gpu-one"), tokens))

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


def test_a_refused_enrolment_costs_no_use(server: RunningServer, make: Make) -> None:
    enrol(server, make()["token"], "gpu-cost")
    enrolment = make(uses=1)

    assert enrol(server, enrolment["token"], "gpu-cost").status_code == 409
    assert enrol(server, enrolment["token"], "gpu-free").status_code == 201


def test_a_leaked_token_is_revoked_with_all_that_came_of_it(
    server: RunningServer, make: Make, admin: httpx.Client
) -> None:
    enrolment = make()
    came_of_it = enrol(server, enrolment["token"], "gpu-leak").json()["token"]
    other = enrol(server, make()["token"], "gpu-other").json()["token"]

    answer = admin.delete(f"/api/v1/tokens/{enrolment['id']}", params={"with_enrolled": True})

    assert answer.status_code == 204
    with server.client(came_of_it) as lost, server.client(other) as kept:
        assert lost.get("/api/v1/jobs").status_code == 401
        assert kept.get("/api/v1/jobs").status_code == 403
    assert enrol(server, enrolment["token"], "gpu-late").status_code == 401


def test_an_enrolment_is_on_record(server: RunningServer, make: Make, admin: httpx.Client) -> None:
    made = enrol(server, make()["token"], "gpu-record").json()

    row = admin.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]
    assert (row["who"], row["action"], row["subject"], row["detail"]) == (
        "cluster",
        "node.enrol",
        f"token:{made['id']}",
        "gpu-record",
    )


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": ["enrol"]},
        {"scopes": ["enrol", "read"], "nodes": "*"},
        {"scopes": ["read"], "uses": 3},
        {"scopes": ["read"], "nodes": "gpu-*"},
        {"scopes": ["admin"], "jobs": "llm-*"},
    ],
)
def test_a_token_whose_limits_mean_nothing_is_not_made(
    admin: httpx.Client, body: dict[str, object]
) -> None:
    answer = admin.post("/api/v1/tokens", json={"name": "x", **body})

    assert answer.status_code == 422


def agent_of(server: RunningServer, folder: Path, token: str, node: str) -> AgentSettings:
    return AgentSettings(server=server.url, enrol_token=token, node=node, state_dir=folder)


def test_an_agent_keeps_its_token_where_only_it_can_read_and_enrols_once(
    server: RunningServer, make: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    settings = agent_of(server, folder, make(uses=1)["token"], "gpu-kept")

    first = asyncio.run(Credentials(settings).token())
    after_a_restart = asyncio.run(Credentials(settings).token())

    assert first == after_a_restart
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_agent_whose_token_is_no_longer_good_enrols_anew(
    server: RunningServer, make: Make, admin: httpx.Client, tmp_path: Path
) -> None:
    settings = agent_of(server, tmp_path / "state", make()["token"], "gpu-again")
    credentials = Credentials(settings)
    first = asyncio.run(credentials.token())
    mine = next(
        row for row in admin.get("/api/v1/tokens").json()["items"] if row["node"] == "gpu-again"
    )
    admin.delete(f"/api/v1/tokens/{mine['id']}")

    asyncio.run(credentials.refused())
    second = asyncio.run(credentials.token())

    assert second != first
    assert asyncio.run(Credentials(settings).token()) == second


def test_an_agent_says_why_it_is_not_enrolled_and_when_it_asks_again(
    server: RunningServer, make: Make, tmp_path: Path
) -> None:
    settings = agent_of(server, tmp_path / "state", make()["token"], "cpu-1")

    with pytest.raises(RefusedError, match=r"gpu-\*") as caught:
        asyncio.run(Credentials(settings).token())
    assert caught.value.retry_s >= 30


def test_an_agent_whose_server_is_away_tries_again(tmp_path: Path) -> None:
    settings = AgentSettings(
        server="http://127.0.0.1:1", enrol_token="hw_x", node="gpu-1", state_dir=tmp_path / "state"
    )

    with pytest.raises(EnrolmentError, match="nothing listens there"):
        asyncio.run(Credentials(settings).token())


def test_a_state_dir_that_others_can_write_to_costs_no_use(
    server: RunningServer, make: Make, tmp_path: Path
) -> None:
    enrolment = make(uses=1)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)

    with pytest.raises(SettingsError, match="chmod go-w"):
        asyncio.run(Credentials(agent_of(server, shared, enrolment["token"], "gpu-w")).token())

    assert enrol(server, enrolment["token"], "gpu-w").status_code == 201


def test_a_kept_token_that_others_could_read_is_not_used(
    server: RunningServer, make: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    settings = agent_of(server, folder, make(may_replace=True)["token"], "gpu-open")
    first = asyncio.run(Credentials(settings).token())
    next(folder.iterdir()).chmod(0o644)

    assert asyncio.run(Credentials(settings).token()) != first


def test_a_given_token_wins_over_enrolment(tmp_path: Path) -> None:
    settings = AgentSettings(
        server="http://127.0.0.1:1",
        token="hw_given",
        enrol_token="hw_x",
        state_dir=tmp_path / "state",
    )

    assert asyncio.run(Credentials(settings).token()) == "hw_given"


def test_an_agent_whose_token_is_for_some_jobs_is_not_heard_about_others(
    server: RunningServer, make: Make, admin: httpx.Client
) -> None:
    enrolment = make(jobs="llm-*")
    tokens = [enrol(server, enrolment["token"], f"gpu-bound-{number}").json() for number in (1, 2)]
    assert {token["jobs"] for token in tokens} == {"llm-*"}
    other = wire.Launch(key="launch of another team", name="vision-bound")
    forged = wire.Launch(key=other.key, name="llm-forged")
    own = wire.Launch(key="launch of one's own", name="llm-bound")
    free = server.new_token("agent", "node-vision")

    def nodes_of(name: str) -> list[str]:
        answer = admin.get(f"/api/v1/jobs/by-name/{name}")
        return list(answer.json()["nodes"]) if answer.status_code == 200 else []

    with (
        synthetic_agent.beating(server.url, free, "node-vision", other),
        contextlib.ExitStack() as bound,
    ):
        waiting.until(lambda: nodes_of("vision-bound"), 60, "the other team's job is known")
        speaking = synthetic_agent.beating
        bound.enter_context(speaking(server.url, tokens[0]["token"], "gpu-bound-1", forged))
        bound.enter_context(speaking(server.url, tokens[1]["token"], "gpu-bound-2", own))
        waiting.until(lambda: nodes_of("llm-bound"), 60, "the own job is known")
        counted = 'hangwatch_frames_refused_total{code="other_job"} 1.0'
        waiting.until(lambda: counted in admin.get("/metrics").text, 60, "the forger was noticed")

        assert nodes_of("llm-bound") == ["gpu-bound-2"]
        assert nodes_of("vision-bound") == ["node-vision"]
        assert nodes_of("llm-forged") == []
