"""The environment that `hangwatch run` gives a job: launch, name, probe's path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangwatch_agent import run

RUN_DIR = Path("/tmp/hw-run")
TWO_NODES = ["torchrun", "--nnodes", "2", "--rdzv-endpoint=node-a:29400", "train.py"]


def launch(command: list[str], base: dict[str, str] | None = None, job: str | None = None) -> str:
    return run.environment(job, RUN_DIR, command, base or {})["HANGWATCH_LAUNCH_ID"]


def test_two_nodes_of_one_torchrun_derive_the_same_launch() -> None:
    other = ["/opt/bin/torchrun", "--nnodes=2", "--node-rank=1", "--rdzv_endpoint", "NODE-A:29400"]

    assert launch(TWO_NODES) == launch([*other, "train.py"])


def test_module_spelling_of_torchrun_derives_the_same_launch() -> None:
    module = ["python", "-m", "torch.distributed.run", *TWO_NODES[1:]]

    assert launch(module) == launch(TWO_NODES)


def test_another_endpoint_is_another_launch() -> None:
    other = ["torchrun", "--nnodes", "2", "--rdzv-endpoint=node-a:29401", "train.py"]

    assert launch(other) != launch(TWO_NODES)


def test_options_of_the_script_do_not_count() -> None:
    assert launch([*TWO_NODES, "--rdzv-endpoint=elsewhere:1"]) == launch(TWO_NODES)


def test_single_node_launches_never_share_an_id() -> None:
    command = ["torchrun", "--nproc-per-node", "4", "train.py"]

    assert launch(command) != launch(command)


def test_master_address_of_a_bare_multi_node_job_names_the_launch() -> None:
    base = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "node-a", "MASTER_PORT": "1234"}

    assert launch(["python", "train.py"], base) == launch(
        ["python", "train.py"], {**base, "RANK": "1"}
    )


def test_torchrun_options_from_the_environment_count() -> None:
    base = {"PET_NNODES": "2", "PET_RDZV_ENDPOINT": "node-a:29400"}

    assert launch(["torchrun", "train.py"], base) == launch(TWO_NODES)


def test_job_name_is_the_given_one_else_the_script() -> None:
    given = run.environment("gpt", RUN_DIR, TWO_NODES, {})
    derived = run.environment(None, RUN_DIR, TWO_NODES, {})

    assert given["HANGWATCH_JOB"] == "gpt"
    assert derived["HANGWATCH_JOB"] == "train"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "-m", "mypkg.train"], "train"),
        (["python", "-m", "torch.distributed.run", "-m", "mypkg.train"], "train"),
        (["./start.sh"], "start.sh"),
    ],
)
def test_script_name_is_found_behind_launchers(command: list[str], name: str) -> None:
    assert run.script_name(command) == name


def test_probe_folder_comes_first_and_once_on_the_path() -> None:
    base = {"PYTHONPATH": f"/mine:{run.INJECT}:/other", "KEEP": "1"}

    found = run.environment(None, RUN_DIR, ["python", "a.py"], base)

    assert found["PYTHONPATH"] == f"{run.INJECT}:/mine:/other"
    assert found["HANGWATCH_RUN_DIR"] == str(RUN_DIR)
    assert found["KEEP"] == "1"


def test_missing_command_is_refused_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run.main(None, tmp_path, ["no-such-command-here"])

    assert left.value.code == run.NOT_FOUND
    assert "command not found: no-such-command-here" in capsys.readouterr().err


def test_run_dir_in_which_others_could_replace_files_is_refused_before_the_job_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(SystemExit) as ended:
        run.main(None, tmp_path, ["true"])

    assert ended.value.code == 126
    assert f"run dir {tmp_path} lets every user remove" in capsys.readouterr().err


def test_run_dir_that_the_probe_could_not_write_to_is_refused_before_the_job_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)

    with pytest.raises(SystemExit) as left:
        run.main(None, tmp_path, ["true"])

    assert left.value.code == run.NOT_EXECUTABLE
    assert f"run dir {tmp_path} cannot be written to" in capsys.readouterr().err
