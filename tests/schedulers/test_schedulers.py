"""Jobs that hang, with the files of deploy/ round them: on a real Slurm, and under torchrun.

On Slurm one job hangs on n2, is requeued without n2 by its own job script, and trains to its end on
n1; the server's action drains n2. Beside it torchrun restarts a job of its own. Both run at once,
for all tests of this file.
"""

from __future__ import annotations

import importlib
import os
import secrets
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from tests.schedulers import cluster
from tests.schedulers.cluster import Cluster
from tests.support import scenes
from tests.support.waiting import until

from hangwatch_agent import client
from hangwatch_server import assets
from hangwatch_server.demo import processes
from hangwatch_server.demo.cases import Case
from hangwatch_server.demo.stage import (
    Stage,
    free_port,
    hangwatch,
    job_environment,
    make_folder,
)

HERE = Path(__file__).parent
DEPLOY = HERE.parents[1] / "deploy" / "slurm"
BAD = "n2"
NAME = "gpt tiny"
ELASTIC, ELASTIC_NODE = "gpt-elastic", "n3"
TOOL = f'#!/bin/sh\nexec {sys.executable} -m hangwatch_agent "$@"\n'
TRAINS_S = 180
# The limits are shortened: what they are by default, other tests say.
SETTINGS = {
    "HANGWATCH_SUSPECT_AFTER_S": "4",
    "HANGWATCH_CONFIRM_AFTER_S": "8",
    "HANGWATCH_ACTION_SETTLE_S": "0",
}
pytestmark = pytest.mark.acceptance
needs_slurm = pytest.mark.skipif(
    not cluster.is_installed(), reason="no Slurm here: tests/support/packages.sh installs it"
)


@dataclass(frozen=True, slots=True)
class Requeued:
    """The job at its end, and all that it left."""

    cluster: Cluster
    stage: Stage
    number: str
    folder: Path

    @property
    def output(self) -> str:
        return (self.folder / "job.out").read_text()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A server with the action that drains, one agent per node."""
    stage = Stage(make_folder(Path(tempfile.mkdtemp(prefix="hangwatch-test-"))), client.Client)
    folder = stage.folder / "slurm"
    try:
        _write(folder / "drain", _drain(folder))
        stage.settings = SETTINGS | {"HANGWATCH_ACTION_COMMAND": str(folder / "drain")}
        stage.start_server()
        for node in (*cluster.NODES, ELASTIC_NODE):
            stage.start_agent(node)
        until(
            lambda: set(scenes.links(stage).values()) == {"live"} and len(scenes.links(stage)) == 3,
            90,
            "all agents are linked",
        )
        yield stage
    finally:
        stage.stop()
        shutil.rmtree(stage.folder, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def elastic(stage: Stage) -> Iterator[Popen[bytes]]:
    """torchrun in its wrapper; not waited for, so that it goes on beside the job on Slurm."""
    _write(stage.folder / "slurm" / "bin" / "hangwatch", TOOL)
    case = scenes.program("steady", nodes=1, ranks=2)
    run = [*hangwatch(), "run", "--job", ELASTIC, "--run-dir", str(stage.run_dir(ELASTIC_NODE))]
    # Not the static rendezvous, whose store keeps the addresses of the attempt before.
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    script = ["--nproc-per-node=2", "--max-restarts=1", str(HERE / "hangs_once.py")]
    wrapper = [sys.executable, str(DEPLOY.with_name("torchrun") / "hangwatch_restart.py")]
    options = ["--job", ELASTIC, "--restart", "--every", "1"]
    mark = secrets.token_hex(8)
    process = processes.start(
        [*wrapper, *options, "--", *run, "--", *torchrun, *script],
        {**_environment(stage, case), processes.MARK: mark},
        stage.log(ELASTIC),
    )
    yield process
    processes.kill_family(process, mark)


@pytest.fixture(scope="module")
def requeued(stage: Stage) -> Iterator[Requeued]:
    """Both ways of acting at once: the server drains the node, the job requeues itself."""
    folder = stage.folder / "slurm"
    _write(folder / "bad" / BAD, "")
    with cluster.running(folder, _scripts(stage, folder)) as running:
        number = _submit(running, stage, folder)
        job = Requeued(running, stage, number, folder)
        until(lambda: running.job(number)["JobState"] == "COMPLETED", TRAINS_S, "the job ends")
        yield job


def _drain(folder: Path) -> str:
    environ = f"SLURM_CONF={folder / 'slurm.conf'} PATH={cluster.PATH}"
    return f"#!/bin/sh\n{environ} exec {sys.executable} {DEPLOY / 'hangwatch_action.py'} --drain\n"


def _submit(running: Cluster, stage: Stage, folder: Path) -> str:
    environ = _environment(stage, scenes.program("steady", nodes=2, ranks=2)) | {
        "PYTHON": sys.executable,
        "DEPLOY": str(DEPLOY),
        "PROGRAM": str(HERE / "train.py"),
        "MASTER": str(free_port()),
        "BAD_NODES": str(folder / "bad"),
    }
    environ["PYTHONPATH"] += f"{os.pathsep}{assets.programs() / 'process'}"
    options = ("--parsable", "--requeue", "--nodes=1-2")
    named = (f"--job-name={NAME}", f"--output={folder / 'job.out'}", "--open-mode=append")
    return running.run("sbatch", *options, *named, str(HERE / "job.sh"), **environ).strip()


def _environment(stage: Stage, case: Case) -> dict[str, str]:
    return job_environment(case) | {
        "PATH": f"{stage.folder / 'slurm' / 'bin'}{os.pathsep}{cluster.PATH}",
        "HANGWATCH_SERVER": stage.url,
        "HANGWATCH_TOKEN": stage.admin_token,
    }


def _scripts(stage: Stage, folder: Path) -> dict[str, str]:
    """The files of deploy/slurm, each under its own node's run dir and with this installation."""
    _write(folder / "bin" / "logger", f'#!/bin/sh\necho "$*" >>{folder}/syslog\n')
    environ = {
        "PATH": f"{folder / 'bin'}:{cluster.PATH}",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "SLURM_CONF": str(folder / "slurm.conf"),
        "HANGWATCH_SERVER": stage.url,
        "HANGWATCH_TOKEN_FILE": str(folder / "token"),
    }
    (folder / "token").write_text(stage.admin_token)
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in environ.items())
    exports += f"export HANGWATCH_RUN_DIR={stage.folder}/run-$SLURMD_NODENAME\n"
    found = {}
    for key, name in (
        ("Prolog", "prolog.sh"),
        ("TaskProlog", "task-prolog.sh"),
        ("EpilogSlurmctld", "epilog-slurmctld.sh"),
    ):
        _write(folder / name, f"#!/bin/sh\n{exports}exec {DEPLOY / name}\n")
        found[key] = str(folder / name)
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@needs_slurm
def test_job_is_requeued_without_the_node_that_hangs_it(requeued: Requeued) -> None:
    job = requeued.cluster.job(requeued.number)

    assert (job["JobState"], job["Restarts"], job["ExcNodeList"]) == ("COMPLETED", "1", BAD)
    assert "begins restart=0 nodes=n[1-2]" in requeued.output
    assert "begins restart=1 nodes=n1\n" in requeued.output
    assert "ends restart=1 status=0" in requeued.output


@needs_slurm
def test_a_name_with_a_blank_is_read_as_slurm_has_it(
    requeued: Requeued, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DEPLOY))
    monkeypatch.setenv("SLURM_CONF", str(requeued.folder / "slurm.conf"))
    monkeypatch.setenv("PATH", cluster.PATH)

    shown = importlib.import_module("hangwatch_slurm").job(requeued.number)

    assert (shown["JobName"], shown["JobState"], shown["ExcNodeList"]) == (NAME, "COMPLETED", BAD)


@needs_slurm
def test_job_script_says_who_hangs_and_what_it_does(requeued: Requeued) -> None:
    said = [line for line in requeued.output.splitlines() if line.startswith("hangwatch: ")]

    assert any(f"hung: Rank 1 ({BAD}, pid " in line for line in said), said
    assert f"hangwatch: requeues without {BAD}: advice is restart_excluding" in said


@needs_slurm
def test_evidence_was_stored_before_the_requeue_ended_the_ranks(requeued: Requeued) -> None:
    incident = _incident(requeued.stage, f"{NAME}-{requeued.number}")
    stacks = requeued.stage.client.get(f"/incidents/{incident['id']}/tree")

    assert incident["job_name"] == f"{NAME}-{requeued.number}"
    assert incident["end_reason"] == "restarted as attempt 2"
    assert incident["verdict"]["action"]["evidence_stored"]
    assert "the evidence is stored" in requeued.output
    assert {frame["name"] for frame in stacks["classes"][0]["frames"]} & {"wait_for_child", "main"}


@needs_slurm
def test_bad_node_is_drained_with_the_reason_once(requeued: Requeued) -> None:
    incident = _incident(requeued.stage, f"{NAME}-{requeued.number}")
    node = requeued.cluster.node(BAD)
    reasons = requeued.cluster.run("sinfo", "--list-reasons", "--noheader", "--format=%N|%E")
    action = requeued.stage.client.get(f"/incidents/{incident['id']}/action")

    assert "DRAIN" in node["State"]
    assert f"{BAD}|hangwatch: missing_ranks in job {NAME}-{requeued.number}" in reasons
    assert (action["state"], action["exit_code"]) == ("done", 0)
    assert f"drained {BAD}" in action["output"]
    assert [
        event["new"]
        for event in requeued.stage.client.get(f"/incidents/{incident['id']}")["history"]
        if event["new"].startswith("action")
    ] == ["action_running", "action_done"]


@needs_slurm
def test_job_names_its_incident_where_slurm_shows_it(requeued: Requeued) -> None:
    incident = _incident(requeued.stage, f"{NAME}-{requeued.number}")
    shown = requeued.cluster.run("scontrol", "show", "job", requeued.number)

    assert "AdminComment=hangwatch: " in shown
    assert f"the evidence is stored in incident {incident['id']}" in shown


@needs_slurm
def test_prolog_says_which_nodes_have_no_agent(requeued: Requeued) -> None:
    """Both have one: it has nothing to say."""
    assert not (requeued.folder / "syslog").exists()


def test_torchrun_restarts_a_job_whose_hung_rank_was_killed(
    stage: Stage, elastic: Popen[bytes]
) -> None:
    assert elastic.wait(TRAINS_S) == 0, stage.tail(ELASTIC, 60)
    said = scenes.said(stage.log(ELASTIC), "hangwatch: ")
    incident = _incident(stage, ELASTIC)

    assert any("hung: Rank 1 " in line for line in said), said
    assert any("killing rank 1, pid " in line for line in said), said
    assert incident["end_reason"] == "restarted as attempt 2"
    assert incident["verdict"]["action"]["evidence_stored"]


def _incident(stage: Stage, job: str) -> dict[str, Any]:
    (found,) = stage.client.get("/incidents", job=job)["items"]
    assert isinstance(found, dict)
    return found
