"""Which launch a rank belongs to: one key per job, on every node and across restarts."""

from __future__ import annotations

import pytest

from hangwatch_agent.launch import apart, launch_of, script_of

ARGV = ("python", "-u", "/home/ann/train.py", "--lr", "1")
TORCHRUN = {"MASTER_ADDR": "n1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}


def test_slurm_step_is_the_key_and_a_requeue_keeps_it() -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_JOB_NAME": "gpt", **TORCHRUN}

    first = launch_of(environ, ARGV, "a")
    again = launch_of({**environ, "SLURM_RESTART_COUNT": "1"}, ARGV, "b")

    assert first.key == again.key == "slurm::7.0"
    assert (first.name, first.restart, again.restart) == ("gpt", 0, 1)


def test_slurm_step_wins_over_the_run_of_each_task() -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_STEPID": "1", "HANGWATCH_LAUNCH_ID": "differs-per-task"}

    assert launch_of(environ, ARGV, "").key == "slurm::7.1"


def test_two_runs_in_one_batch_script_are_two_launches() -> None:
    keys = {
        launch_of({"SLURM_JOB_ID": "7", "HANGWATCH_LAUNCH_ID": name}, ARGV, "").key
        for name in ("one", "two")
    }

    assert len(keys) == 2


def test_launch_id_tells_jobs_with_a_copied_elastic_id_apart() -> None:
    environ = {**TORCHRUN, "TORCHELASTIC_RUN_ID": "100"}

    assert launch_of(environ, ARGV, "").key == "elastic:100"
    assert launch_of({**environ, "HANGWATCH_LAUNCH_ID": "x"}, ARGV, "").key == "run:x"


def test_elastic_id_none_is_no_id() -> None:
    assert launch_of(TORCHRUN, ARGV, "").key.startswith("bare:")


def test_bare_job_on_several_nodes_has_the_same_key_everywhere() -> None:
    environ = {**TORCHRUN, "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}

    keys = {launch_of(environ, ARGV, start, lambda _: "10.0.0.1").key for start in ("a", "b")}

    assert keys == {"bare:10.0.0.1:29500:train.py"}


def test_bare_job_on_one_node_keeps_its_key_when_a_restart_takes_a_new_port() -> None:
    environ = {**TORCHRUN, "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}

    before = launch_of(environ, ARGV, "launcher-1")
    after = launch_of({**environ, "MASTER_PORT": "4711"}, ARGV, "launcher-1")
    other = launch_of(environ, ARGV, "launcher-2")

    assert before.key == after.key != other.key


def test_elastic_restart_counts() -> None:
    assert launch_of({"TORCHELASTIC_RESTART_COUNT": "3"}, ARGV, "").restart == 3
    assert launch_of({"TORCHELASTIC_RESTART_COUNT": "x"}, ARGV, "").restart == 0


def test_restarts_beyond_what_a_server_takes_are_not_told() -> None:
    told = {"TORCHELASTIC_RESTART_COUNT": "999999", "SLURM_RESTART_COUNT": "999999"}

    assert launch_of(told, ARGV, "").restart == 1_000_000


def test_name_is_given_or_slurms_or_the_scripts() -> None:
    assert launch_of({"HANGWATCH_JOB": "mine", "SLURM_JOB_NAME": "s"}, ARGV, "").name == "mine"
    assert launch_of({}, ARGV, "").name == "train.py"
    assert launch_of({}, (), "").name == "unnamed"


def test_oversized_values_are_cut() -> None:
    launch = launch_of({"HANGWATCH_LAUNCH_ID": "x" * 9999, "HANGWATCH_JOB": "y" * 9999}, ARGV, "")

    assert len(launch.key) <= 200
    assert len(launch.name) <= 120


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        (("python", "train.py"), "train.py"),
        (("python", "-X", "dev", "-u", "/a/b.py", "-m"), "b.py"),
        (("python", "-m", "pkg.train", "x"), "pkg.train"),
        (("python", "-c", "print()"), ""),
        (("python",), ""),
    ],
)
def test_script_of_a_command_line(argv: tuple[str, ...], script: str) -> None:
    assert script_of(argv) == script


def test_key_that_another_user_of_the_node_holds_is_not_shared() -> None:
    launch = launch_of({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"}, ARGV, "")
    long = launch_of({"HANGWATCH_LAUNCH_ID": "x" * 9999}, ARGV, "")

    assert apart(launch, 1000, []) == launch
    assert apart(launch, 1000, [(launch.key, 1000), ("other", 1001)]) == launch
    assert apart(launch, 1001, [(launch.key, 1000)]).key == f"{launch.key}@1001"
    assert len(apart(long, 2**32 - 1, [(long.key, 0)]).key) <= 200
