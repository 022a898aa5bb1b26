"""What the programs of deploy/slurm decide; tests/schedulers shows that they do it."""

from __future__ import annotations

import importlib
import os
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
