"""What must outlive the death of the server, and the restart of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import scenes
from tests.support.waiting import until

from hangwatch_server.demo import cases
from hangwatch_server.demo.main import find_verdict
from hangwatch_server.demo.stage import NODES, Stage
from hangwatch_server.model import State


def evidence(stage: Stage, incident: str) -> dict[str, set[int]]:
    """Capture id to the ranks whose stacks it holds, of those that hold any."""
    found = {}
    for capture in stage.client.get(f"/incidents/{incident}")["captures"]:
        parts = stage.client.get(f"/captures/{capture}")["parts"]
        with_stacks = {part["rank"] for part in parts if part["has_stacks"]}
        if with_stacks:
            found[capture] = with_stacks
    return found


def test_incident_and_evidence_outlive_a_killed_server(own_stage: Stage) -> None:
    own_stage.start_server()
    own_stage.start_agents()
    own_stage.start_job(cases.find("dataloader"), "survivor")
    before = until(
        lambda: scenes.verdict_in(own_stage, "survivor", State.HUNG), 120, "the hang is confirmed"
    )
    stored = until(lambda: evidence(own_stage, before["incident"]), 90, "evidence is stored")
    assert own_stage.server is not None

    own_stage.server.kill()
    own_stage.server.wait()
    own_stage.start_server()
    known = scenes.job(own_stage, "survivor")
    kept = evidence(own_stage, before["incident"])
    after = until(
        lambda: _seen_again(own_stage, "survivor"),
        120,
        "agents are back and the hang is seen again",
    )

    # Until its agents are back, how the job is now is not known.
    assert known["state"] in (State.UNKNOWN, State.HUNG)
    assert known["verdict"]["incident"] == before["incident"]
    assert all(ranks <= kept.get(capture, set()) for capture, ranks in stored.items())
    assert after["incident"] == before["incident"]
    assert (after["attempt"], after["culprit_ranks"]) == (1, before["culprit_ranks"])
    incidents = own_stage.client.get("/incidents")["items"]
    assert [incident["id"] for incident in incidents] == [before["incident"]]
    assert [incident["ended_at"] for incident in incidents] == [None]


def _seen_again(stage: Stage, name: str) -> dict[str, Any] | None:
    """The job's hang as all ranks of both nodes report it now, not as it was stored."""
    if scenes.links(stage) != dict.fromkeys(NODES, "live"):
        return None
    job = scenes.job(stage, name)
    is_reported = job["is_live"] and job["reporting"] == job["world_size"]
    return scenes.verdict_in(stage, name, State.HUNG) if is_reported else None


def test_restarted_job_is_the_same_job_in_attempt_2(stage: Stage, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    case = scenes.program(
        "restarted",
        nodes=1,
        ranks=2,
        launcher_args=("--max-restarts", "1"),
        # The store that all attempts share hands gloo the addresses of the attempt before.
        env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "FAIL_ONCE_THERE_IS": str(seen)},
    )
    job = stage.start_job(case, case.name)
    try:
        first = until(lambda: find_verdict(stage, case.name), 120, "the first attempt is seen")
        seen.touch()
        second = until(
            lambda: _verdict_of(stage, case.name, attempt=2), 120, "the second attempt is seen"
        )
    finally:
        job.stop()

    assert (first["job"], first["attempt"]) == (second["job"], 1)
    jobs = stage.client.get("/jobs", q=case.name)["items"]
    assert len([item for item in jobs if item["name"] == case.name]) == 1


def _verdict_of(stage: Stage, name: str, *, attempt: int) -> dict[str, Any] | None:
    verdict = find_verdict(stage, name)
    return verdict if verdict is not None and verdict["attempt"] == attempt else None
