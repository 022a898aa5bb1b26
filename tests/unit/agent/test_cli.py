"""The command line's parser, flags and error boundary."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from hangwatch_agent import cli, client
from hangwatch_agent.commands import flags, jobs
from hangwatch_agent.errors import AgentError
from hangwatch_agent.settings import AgentSettings
from hangwatch_server.model import State
from hangwatch_server.settings import ServerSettings


def test_every_server_setting_is_a_flag_of_serve() -> None:
    for item in dataclasses.fields(ServerSettings):
        name = f"--{item.name.replace('_', '-')}"
        given = [name] if item.type in (bool, "bool") else [name, "7"]
        arguments = cli.parser().parse_args(["serve", *given])
        assert flags.values(arguments, ServerSettings)[item.name] in {"7", "true"}


def test_every_agent_setting_is_a_flag_of_agent() -> None:
    for item in dataclasses.fields(AgentSettings):
        name = f"--{item.name.replace('_', '-')}"
        given = [name] if item.type in (bool, "bool") else [name, "7"]
        arguments = cli.parser().parse_args(["agent", *given])
        assert flags.values(arguments, AgentSettings)[item.name] in {"7", "true"}


def test_a_boolean_setting_can_be_switched_off_by_a_flag() -> None:
    arguments = cli.parser().parse_args(["serve", "--no-allow-anonymous"])

    assert flags.values(arguments, ServerSettings)["allow_anonymous"] == "false"


def test_every_setting_says_what_it_does_and_why() -> None:
    for schema in (ServerSettings, AgentSettings):
        for item in dataclasses.fields(schema):
            assert item.metadata["help"], item.name
            assert item.metadata["why"], item.name


def test_every_state_has_an_exit_code() -> None:
    assert set(client.EXIT_CODES) == {state.value for state in State}


@pytest.mark.parametrize("words", [["--debug", "status"], ["status", "--debug"]])
def test_common_flags_work_before_and_after_the_command(words: list[str]) -> None:
    assert cli.parser().parse_args(words).debug is True


def test_the_command_of_run_keeps_its_own_flags() -> None:
    words = ["run", "--job", "gpt", "--", "torchrun", "--nnodes", "2", "train.py", "--job", "x"]

    arguments = cli.parser().parse_args(words)

    assert arguments.job == "gpt"
    assert arguments.command[-6:] == ["torchrun", "--nnodes", "2", "train.py", "--job", "x"]


def run_handler(monkeypatch: pytest.MonkeyPatch, error: BaseException, *words: str) -> object:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(jobs, "_status", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main(["status", *words])
    return caught.value.code


def test_an_expected_error_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_handler(monkeypatch, AgentError("it broke: try this"))

    assert code == 2
    assert capsys.readouterr().err == "hangwatch: it broke: try this\n"


def test_a_defect_is_one_sentence_unless_the_traceback_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_handler(monkeypatch, ZeroDivisionError("oops")) == 2
    assert "Traceback" not in capsys.readouterr().err

    assert run_handler(monkeypatch, ZeroDivisionError("oops"), "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_handler(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", [["serve"], ["db", "upgrade"], ["demo", "--list"]])
def test_without_the_servers_packages_the_command_says_how_to_get_them(command: list[str]) -> None:
    program = (
        "import sys\n"
        "for name in ('fastapi', 'uvicorn', 'uvloop', 'sqlalchemy', 'psycopg', 'psutil'):\n"
        "    sys.modules[name] = None\n"
        "from hangwatch_agent import cli\n"
        f"cli.main({command!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 2
    assert "pip install 'hangwatch[server]'" in done.stderr
    assert "Traceback" not in done.stderr
