"""What the tests of real jobs ask a stage again and again, and the jobs that only they use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.support.waiting import until

from hangwatch_server.demo import processes
from hangwatch_server.demo.cases import Case, Evidence
from hangwatch_server.demo.main import find_verdict
from hangwatch_server.demo.stage import RunningJob, Stage, hangwatch
from hangwatch_server.model import Kind, State


def program(
    name: str,
    *,
    nodes: int,
    ranks: int,
    launcher_args: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
) -> Case:
    """A program of tests/programs/plain: nothing is expected of it here."""
    return Case(
        name=name,
        family="plain",
        title=name,
        program=f"{name}.py",
        launcher="torchrun",
        launcher_args=launcher_args,
        env=env or {},
        nodes=nodes,
        ranks=ranks,
        evidence=Evidence.NONE,
        state=State.HEALTHY,
        kind=Kind.NONE,
        culprits="",
    )


def verdict_in(stage: Stage, name: str, *states: State) -> dict[str, Any] | None:
    """The job's verdict once it is in one of `states`."""
    verdict = find_verdict(stage, name)
    return verdict if verdict is not None and verdict["state"] in states else None


def job(stage: Stage, name: str) -> dict[str, Any]:
    found: dict[str, Any] = stage.client.get(f"/jobs/by-name/{name}")
    return found


def ranks(stage: Stage, job_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = stage.client.get(f"/jobs/{job_id}/ranks")["items"]
    return items


def links(stage: Stage) -> dict[str, str]:
    """Node name to the state of its agent's connection."""
    return {node["name"]: node["link"] for node in stage.client.get("/nodes")["items"]}


@contextlib.contextmanager
def agent(
    stage: Stage,
    name: str,
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    wrapper: Sequence[str] = (),
) -> Iterator[Path]:
    """An agent beside the stage's own, its output in the log that is given."""
    log = stage.log(name)
    command = [*wrapper, *hangwatch(), "agent", "--run-dir", str(stage.run_dir(name))]
    process = processes.start([*command, *arguments], environ or {}, log)
    try:
        yield log
    finally:
        stop(process)


def stop(process: Popen[bytes]) -> None:
    processes.stop(process)


def said(log: Path, word: str) -> list[str]:
    """The lines of a log that contain `word`."""
    return [line for line in log.read_text(errors="replace").splitlines() if word in line]


@dataclass(slots=True)
class Calm:
    """A running job and its two agents, before and after something that must not touch them."""

    stage: Stage
    job: RunningJob

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Whatever happens inside: the same connections, and the job goes on and is healthy."""
        before = self._connections()
        yield
        reached_s = self.job.last_progress_s() or 0.0
        until(lambda: (self.job.last_progress_s() or 0.0) > reached_s, 90, "the job goes on")
        until(lambda: verdict_in(self.stage, self.job.name, State.HEALTHY), 90, "it is healthy")
        assert self._connections() == before
        found = links(self.stage)
        assert {found[node] for node in self.stage.agents} == {"live"}

    def _connections(self) -> dict[str, list[str]]:
        """All that the agents logged of their connections since they started."""
        return {
            node: [line for line in said(self.stage.log(node), "linked")]
            for node in self.stage.agents
        }
