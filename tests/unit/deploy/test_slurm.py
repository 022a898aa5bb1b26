"""What the programs of deploy/slurm decide; tests/schedulers shows that they do it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest
from tests.support import waiting

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "slurm"


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("hangwatch_watch")


@pytest.fixture
def action(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("hangwatch_action")


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("hangwatch_slurm")


def verdict(advice: str = "restart", blamed: tuple[str, ...] = (), culprit: str = "n2") -> Any:
    return {
        "action": {"advice": advice, "exclude_nodes": list(blamed)},
        "culprits": [{"node": culprit}],
        "attempt": 1,
    }


def planned(watch: ModuleType, given: Any, exclude: str = "blamed", restarts: int = 0) -> Any:
    return watch.plan(given, watch.Run("7", restarts, ("n1", "n2", "n3")), exclude, 2)


def test_node_is_excluded_only_for_evidence_against_itself(watch: ModuleType) -> None:
    assert planned(watch, verdict()).exclude == ()
    assert planned(watch, verdict("restart_excluding", ("n2",))).exclude == ("n2",)


def test_culprits_nodes_are_excluded_where_the_user_asks_for_it(watch: ModuleType) -> None:
    assert planned(watch, verdict(), "culprits").exclude == ("n2",)
    assert planned(watch, verdict("restart_excluding", ("n2",)), "none").exclude == ()


def test_only_nodes_of_the_job_are_excluded_whatever_their_domain(watch: ModuleType) -> None:
    found = planned(watch, verdict("restart_excluding", ("n2.cluster.example", "n9", "n22")))

    assert found.exclude == ("n2",)


def test_what_befalls_every_node_is_no_nodes_fault(watch: ModuleType) -> None:
    assert planned(watch, verdict("restart_excluding", ("n1", "n2", "n3"))).exclude == ()


@pytest.mark.parametrize("advice", ["investigate", "wait", "none"])
def test_job_that_would_hang_again_is_not_requeued(watch: ModuleType, advice: str) -> None:
    found = planned(watch, verdict(advice))

    assert not found.is_restart
    assert "not requeued" in watch.advice(found, has_leave=True)


def test_requeues_are_bounded(watch: ModuleType) -> None:
    assert planned(watch, verdict(), restarts=1).is_restart
    assert not planned(watch, verdict(), restarts=2).is_restart


def test_advice_says_how_to_let_it_act(watch: ModuleType) -> None:
    found = planned(watch, verdict("restart_excluding", ("n2",)))

    assert "would requeue without n2" in watch.advice(found, has_leave=False)
    assert "--requeue" in watch.advice(found, has_leave=False)


def test_verdict_of_the_run_before_is_left_alone_also_when_more_is_learnt_of_it(
    watch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "localtime", lambda text: text)
    found = watch.Watch(None, watch.Run("7", 1, ("n1",), "2026-11-20T18:00:00"))

    def is_of_this_run(attempt: int, since: str) -> bool:
        return bool(found.is_of_this_run({"attempt": attempt, "since": since}))

    assert not is_of_this_run(3, "2026-11-20T17:59:00")  # torchrun had restarted it twice
    assert not is_of_this_run(3, "2026-11-20T18:01:00")
    assert is_of_this_run(4, "2026-11-20T18:02:00")


def test_a_run_counts_whose_run_before_never_came_to_train(
    watch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "localtime", lambda text: text)
    found = watch.Watch(None, watch.Run("7", 2, ("n1",), "2026-11-20T18:00:00"))

    assert found.is_of_this_run({"attempt": 1, "since": "2026-11-20T18:02:00"})


def test_times_of_the_server_are_read_as_slurm_writes_them(watch: ModuleType) -> None:
    now = time.time()
    utc = time.strftime("%Y-%m-%dT%H:%M:%S.123456Z", time.gmtime(now))

    assert watch.localtime(utc) == time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now))


def test_name_of_the_job_is_the_one_that_the_task_prolog_gives(watch: ModuleType) -> None:
    environ = {"SLURM_JOB_NAME": "gpt", "SLURM_JOB_ID": "7"}

    assert watch.options([], environ).job == "gpt-7"
    assert watch.options([], environ | {"HANGWATCH_JOB": "mine"}).job == "mine"
    assert not watch.options([], environ).requeue


def test_reason_of_a_drain_is_one_short_line(action: ModuleType) -> None:
    incident = {"kind": "missing_ranks", "job_name": "gpt\n\x1b[31m" + "x" * 500, "id": "i_1"}

    text = action.reason(incident, "")

    assert text.isprintable()
    assert len(text) == action.REASON_CHARS


def test_job_named_without_a_number_is_left_alone(action: ModuleType) -> None:
    assert action.running_job({"job_name": "gpt-7b", "culprit_nodes": ["n2"]}) == ""


def test_a_watcher_ends_with_the_job_script_that_began_it(tmp_path: Path) -> None:
    """Slurm kills what a step has left only where it tracks processes by cgroup."""
    asked = tmp_path / "asked"
    for name, words in (("hangwatch", f"touch {asked}"), ("scontrol", "echo n1")):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\n{words}\n")
        command.chmod(0o755)
    watcher = f"{sys.executable} {FOLDER / 'hangwatch_watch.py'} --every 0.1 >/dev/null 2>&1 &"
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}

    with subprocess.Popen(
        ["/bin/sh", "-c", f"{watcher} echo $!; read until_the_end"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    ) as script:
        assert script.stdout is not None
        pid = int(script.stdout.readline())
        waiting.until(asked.exists, 60, "the watcher asks")

    waiting.until(lambda: not psutil.pid_exists(pid), 60, "the watcher ends")


# As Slurm prints a job, the words of its user in between.
SHOWN = (
    "JobId=7 JobName={name} UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A Priority=1 "
    "JobState=RUNNING Reason=None Restarts=0 ReqNodeList=(null) ExcNodeList=(null) "
    "NodeList=n[1-3] BatchHost=n1 Comment={comment}"
)
CONTROL = """#!/bin/sh
cd {folder}
echo "$*" >>asked
case "$1 $2" in
    "show --oneliner") cat shown ;;
    "show hostnames") printf 'n1\\nn2\\nn3\\n' ;;
    "requeuehold 7") while [ -e wait ]; do sleep 0.1; done ;;
    "update JobId=7") [ ! -e refuse ] || exit 1 ;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A controller that writes down what it is asked; it holds only while `wait` is away."""
    control = tmp_path / "scontrol"
    control.write_text(CONTROL.format(folder=tmp_path))
    control.chmod(0o755)
    shown = SHOWN.format(name="gpt", comment="")
    (tmp_path / "shown").write_text(shown)
    (tmp_path / "asked").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "asked"


def begin_action(job_name: str, blamed: tuple[str, ...]) -> subprocess.Popen[str]:
    """The server's action on a hang of job 7, in a session of its own as the server starts it."""
    action = {"advice": "restart_excluding", "exclude_nodes": list(blamed)}
    incident = {
        "id": "i_1",
        "kind": "missing_ranks",
        "job_name": job_name,
        "culprit_nodes": ["n2"],
        "verdict": {"action": action},
    }
    process = subprocess.Popen(
        [sys.executable, str(FOLDER / "hangwatch_action.py"), "--requeue"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    json.dump({"incident": incident, "nodes": ["n1", "n2", "n3"], "url": ""}, process.stdin)
    process.stdin.close()
    process.stdin = None
    return process


def test_an_action_that_is_killed_while_it_requeues_leaves_no_job_held(asked: Path) -> None:
    asked.with_name("wait").touch()
    with begin_action("gpt-7", ("n2",)) as action:
        waiting.until(lambda: "requeuehold 7" in asked.read_text(), 60, "the job is held")
        os.killpg(action.pid, signal.SIGKILL)

    asked.with_name("wait").unlink()

    waiting.until(lambda: "release 7" in asked.read_text(), 60, "the job is released")
    assert asked.read_text().split("requeuehold 7\n")[1].splitlines() == [
        "update JobId=7 ExcNodeList=n2",
        "release 7",
    ]


def test_a_list_that_slurm_refuses_leaves_no_job_held(
    asked: Path, slurm: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    asked.with_name("refuse").touch()
    monkeypatch.setattr(slurm, "UPDATE_TRIES", 1)

    with pytest.raises(SystemExit):
        slurm.hold_and_release("7", "n2")

    assert asked.read_text().splitlines()[-1] == "release 7"
    assert "may start on n2 again" in capsys.readouterr().err


def test_a_job_that_shuns_no_node_is_requeued_without_being_held(asked: Path) -> None:
    with begin_action("gpt-7", ()) as action:
        told, _ = action.communicate(timeout=60)

    assert told == "requeued job 7\n"
    assert asked.read_text().splitlines()[-1] == "requeue 7"


@pytest.mark.parametrize("name", ["my gpt run", "a b=c", r"x\n", "gpt NodeList=n9 JobState=DONE"])
def test_job_is_requeued_whatever_blanks_and_signs_its_name_has(asked: Path, name: str) -> None:
    asked.with_name("shown").write_text(SHOWN.format(name=name, comment="NodeList=n9"))

    with begin_action(f"{name}-7", ()) as action:
        told, _ = action.communicate(timeout=60)

    assert told == "requeued job 7\n"


def test_the_task_prolog_hands_a_name_on_as_it_is(tmp_path: Path) -> None:
    name = r"my \ttest \c"
    environ = {"PATH": os.environ["PATH"], "SLURM_JOB_NAME": name, "SLURM_JOB_ID": "7"}

    done = subprocess.run(
        [FOLDER / "task-prolog.sh"], env=environ, capture_output=True, text=True, check=True
    )

    assert f"export HANGWATCH_JOB={name}-7" in done.stdout.splitlines()
