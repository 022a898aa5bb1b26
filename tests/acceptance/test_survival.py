"""What must outlive the death of the server, and the restart of a job."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.waiting import until

from hangwatch_server.demo import cases
from hangwatch_server.demo.cases import Case, Evidence
from hangwatch_server.demo.main import find_verdict
from hangwatch_server.demo.stage import Stage
from hangwatch_server.model import Kind, State


def hung_verdict(stage: Stage, name: str) -> dict[str, Any] | None:
    verdict = find_verdict(stage, name)
    return verdict if verdict is not None and verdict["state"] == State.HUNG else None


def incidents(stage: Stage) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = stage.client.get("/incidents")["items"]
    return items


def evidence(stage: Stage, incident: str) -> list[str]:
    found: list[str] = stage.client.get(f"/incidents/{incident}")["captures"]
    return found


def test_incident_and_evidence_outlive_a_killed_server(own_stage: Stage) -> None:
    own_stage.start_server()
    own_stage.start_agents()
    own_stage.start_job(cases.find("dataloader"), "survivor")
    before = until(lambda: hung_verdict(own_stage, "survivor"), 120, "the hang is confirmed")
    stored = until(lambda: evidence(own_stage, before["incident"]), 30, "evidence is stored")
    assert own_stage.server is not None

    own_stage.server.kill()
    own_stage.server.wait()
    own_stage.start_server()
    after = until(lambda: hung_verdict(own_stage, "survivor"), 60, "the hang is seen again")

    assert after["incident"] == before["incident"]
    assert after["culprit_ranks"] == before["culprit_ranks"]
    assert [incident["id"] for incident in incidents(own_stage)] == [before["incident"]]
    assert set(stored) <= set(evidence(own_stage, before["incident"]))
    until(
        lambda: all(node["link"] == "live" for node in own_stage.client.get("/nodes")["items"]),
        30,
        "both agents are back",
    )


@pytest.fixture
def restarted() -> Case:
    return Case(
        name="restarted",
        title="One rank raises in the first attempt",
        program="restarted.py",
        launcher="torchrun",
        launcher_args=("--max-restarts", "1"),
        nodes=1,
        ranks=2,
        evidence=Evidence.NONE,
        state=State.HEALTHY,
        kind=Kind.NONE,
        culprits="",
    )


def test_restarted_job_is_the_same_job_in_attempt_2(stage: Stage, restarted: Case) -> None:
    job = stage.start_job(restarted, "restarted")
    try:
        first = until(lambda: find_verdict(stage, "restarted"), 90, "the first attempt is seen")
        second = until(
            lambda: (
                verdict
                if (verdict := find_verdict(stage, "restarted")) and verdict["attempt"] == 2
                else None
            ),
            90,
            "the second attempt is seen",
        )
    finally:
        job.stop()

    assert (first["job"], first["attempt"]) == (second["job"], 1)
    jobs = stage.client.get("/jobs", q="restarted")["items"]
    assert len([item for item in jobs if item["name"] == "restarted"]) == 1
