"""A job that one of its nodes hangs, on a real Slurm of two nodes, with the files of deploy/slurm.

One job for all tests of this file: it hangs on n2, is requeued without n2 by its own job script,
and trains to its end on n1.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.slurm import cluster
from tests.slurm.cluster import Cluster
from tests.support import scenes
from tests.support.waiting import until

from hangwatch_agent import client
from hangwatch_server import assets
from hangwatch_server.demo.stage import Stage, free_port, job_environment, make_folder

HERE = Path(__file__).parent
DEPLOY = HERE.parents[1] / "deploy" / "slurm"
BAD = "n2"
NAME = "gpt-tiny"
TRAINS_S = 180
# The limits are shortened: what they are by default, other tests say.
SETTINGS = {
    "HANGWATCH_SUSPECT_AFTER_S": "4",
    "HANGWATCH_CONFIRM_AFTER_S": "8",
    "HANGWATCH_ACTION_SETTLE_S": "0",
}
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not cluster.is_installed(), reason="no Slurm here: tests/support/packages.sh installs it"
    ),
]


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
def requeued() -> Iterator[Requeued]:
    """Both ways of acting at once: the server drains the node, the job requeues itself."""
    with ExitStack() as ends:
        stage = Stage(make_folder(Path(tempfile.mkdtemp(prefix="hangwatch-test-"))), client.Client)
        ends.callback(shutil.rmtree, stage.folder, ignore_errors=True)
        ends.callback(stage.stop)
        folder = stage.folder / "slurm"
        _write(folder / "bad" / BAD, "")
        _write(folder / "drain", _drain(folder))
        stage.settings = SETTINGS | {"HANGWATCH_ACTION_COMMAND": str(folder / "drain")}
        stage.start_server()
        for node in cluster.NODES:
            stage.start_agent(node)
        running = ends.enter_context(cluster.running(folder, _scripts(stage, folder)))
        number = _submit(running, stage, folder)
        job = Requeued(running, stage, number, folder)
        until(lambda: running.job(number)["JobState"] == "COMPLETED", TRAINS_S, "the job ends")
        yield job


def _drain(folder: Path) -> str:
    environ = f"SLURM_CONF={folder / 'slurm.conf'} PATH={cluster.PATH}"
    return f"#!/bin/sh\n{environ} exec {sys.executable} {DEPLOY / 'hangwatch_action.py'} --drain\n"


def _submit(running: Cluster, stage: Stage, folder: Path) -> str:
    programs = assets.programs()
    environ = job_environment(scenes.program("steady", nodes=2, ranks=2)) | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{cluster.PATH}",
        "PYTHON": sys.executable,
        "DEPLOY": str(DEPLOY),
        "PROGRAM": str(HERE / "train.py"),
        "MASTER": str(free_port()),
        "BAD_NODES": str(folder / "bad"),
        "HANGWATCH_SERVER": stage.url,
        "HANGWATCH_TOKEN": stage.admin_token,
    }
    environ["PYTHONPATH"] += f"{os.pathsep}{programs / 'process'}"
    options = ("--parsable", "--requeue", "--nodes=1-2")
    named = (f"--job-name={NAME}", f"--output={folder / 'job.out'}", "--open-mode=append")
    return running.run("sbatch", *options, *named, str(HERE / "job.sh"), **environ).strip()


def _scripts(stage: Stage, folder: Path) -> dict[str, str]:
    """The files of deploy/slurm, each under its own node's run dir and with this installation."""
    tool = f'#!/bin/sh\nexec {sys.executable} -m hangwatch_agent "$@"\n'
    _write(folder / "bin" / "hangwatch", tool)
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


def test_job_is_requeued_without_the_node_that_hangs_it(requeued: Requeued) -> None:
    job = requeued.cluster.job(requeued.number)

    assert (job["JobState"], job["Restarts"], job["ExcNodeList"]) == ("COMPLETED", "1", BAD)
    assert "begins restart=0 nodes=n[1-2]" in requeued.output
    assert "begins restart=1 nodes=n1\n" in requeued.output
    assert "ends restart=1 status=0" in requeued.output


def test_job_script_says_who_hangs_and_what_it_does(requeued: Requeued) -> None:
    said = [line for line in requeued.output.splitlines() if line.startswith("hangwatch: ")]

    assert any(f"hung: Rank 1 ({BAD}, pid " in line for line in said), said
    assert f"hangwatch: requeues without {BAD}: advice is restart_excluding" in said


def test_evidence_was_stored_before_the_requeue_ended_the_ranks(requeued: Requeued) -> None:
    (incident,) = requeued.stage.client.get("/incidents")["items"]
    stacks = requeued.stage.client.get(f"/incidents/{incident['id']}/tree")

    assert incident["job_name"] == f"{NAME}-{requeued.number}"
    assert incident["end_reason"] == "restarted as attempt 2"
    assert incident["verdict"]["action"]["evidence_stored"]
    assert "the evidence is stored" in requeued.output
    assert {frame["name"] for frame in stacks["classes"][0]["frames"]} & {"wait_for_child", "main"}


def test_bad_node_is_drained_with_the_reason_once(requeued: Requeued) -> None:
    (incident,) = requeued.stage.client.get("/incidents")["items"]
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


def test_prolog_says_which_nodes_have_no_agent(requeued: Requeued) -> None:
    """Both had one."""
    assert not (requeued.folder / "syslog").exists()
