"""Agents that cannot work as meant: no server, a token that is refused, processes they cannot read.

Each says what is wrong and what to do, keeps on trying, and harms nobody.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from tests.support import commands, scenes
from tests.support.waiting import until

from hangwatch_server.demo import processes
from hangwatch_server.demo.cases import Case
from hangwatch_server.demo.stage import (
    RunningJob,
    Stage,
    free_port,
    hangwatch,
    job_environment,
    launch_command,
)
from hangwatch_server.model import State

NOT_LINKED = "not_linked"
# A root agent in a container usually lacks this capability, and then root's own jobs, which have
# more of them, are out of its reach.
WITHOUT_PTRACE = ("setpriv", "--bounding-set", "-sys_ptrace")


def agent_token(stage: Stage, node: str) -> str:
    body = {"name": f"of {node}", "scopes": ["agent"], "node": node}
    text: str = stage.client.post("/tokens", body)["token"]
    return text


@pytest.mark.parametrize("trouble", ["wrong token", "no token", "token of another node"])
def test_agent_that_is_refused_says_once_why_and_what_to_do(stage: Stage, trouble: str) -> None:
    tokens = {
        "wrong token": "hw_00000000_wrong",
        "no token": "",
        "token of another node": agent_token(stage, "node-y"),
    }
    remedies = {"token of another node": "--node"}
    name = f"refused-{secrets.token_hex(4)}"
    environ = {"HANGWATCH_TOKEN": tokens[trouble]} if tokens[trouble] else {}

    with scenes.agent(stage, name, "--server", stage.url, "--node", name, environ=environ) as log:
        lines = until(lambda: scenes.said(log, NOT_LINKED), 90, "it says why")

    assert len(lines) == 1
    assert remedies.get(trouble, "hangwatch token create") in lines[0]
    assert name not in scenes.links(stage)
    assert "Traceback" not in log.read_text()
    assert "wrong" not in lines[0].replace("wrong_node", "")  # the token's text stays secret


def test_agent_without_a_server_waits_for_it(own_stage: Stage) -> None:
    own_stage.port = free_port()
    arguments = ("--server", own_stage.url, "--node", "early")
    environ = {"HANGWATCH_TOKEN": own_stage.admin_token}

    with scenes.agent(own_stage, "early", *arguments, environ=environ) as log:
        lines = until(lambda: scenes.said(log, NOT_LINKED), 90, "it says why")
        own_stage.start_server()
        until(lambda: scenes.links(own_stage) == {"early": "live"}, 90, "it finds the server")

    assert "hangwatch serve" in lines[0]
    assert len(scenes.said(log, NOT_LINKED)) == 1


@pytest.mark.parametrize(
    ("arguments", "environ", "words", "code"),
    [
        (("agent",), {"HANGWATCH_RUNDIR": "/tmp"}, ("HANGWATCH_RUNDIR", "HANGWATCH_RUN_DIR"), 2),
        (("serve",), {"HANGWATCH_PROT": "1"}, ("HANGWATCH_PROT", "HANGWATCH_PORT"), 2),
        (("agent",), {}, ("no server given", "--server"), 2),
        (("agent", "--server", "ftp://x"), {}, ("http://HOST:PORT",), 2),
        (("run",), {}, ("no command given", "hangwatch run -- torchrun"), 2),
        (("run", "--", "torchrum", "train.py"), {}, ("command not found: torchrum",), 127),
        (("demo", "--case", "unknown"), {}, ("no case 'unknown'", "hangwatch demo --list"), 2),
    ],
    ids=[
        "misspelt variable of the agent",
        "misspelt variable of the server",
        "agent without an address",
        "agent with an address of another kind",
        "run without a command",
        "run of a command that does not exist",
        "demo of an unknown case",
    ],
)
def test_command_that_cannot_begin_says_why_in_words(
    arguments: tuple[str, ...],
    environ: dict[str, str],
    words: tuple[str, ...],
    code: int,
    tmp_path: Path,
) -> None:
    done = commands.hangwatch(*arguments, **{"HANGWATCH_RUN_DIR": str(tmp_path), **environ})

    commands.assert_refused(done, *words, code=code)


def start_on(stage: Stage, node: str, case: Case) -> RunningJob:
    """Start the program on a node that is none of the stage's own two."""
    mark = secrets.token_hex(8)
    log = stage.log(f"job-{node}")
    command = [*hangwatch(), "run", "--job", case.name, "--run-dir", str(stage.run_dir(node))]
    command += ["--", *launch_command(case, 0, free_port())]
    environment = {processes.MARK: mark, **job_environment(case)}
    return RunningJob(case, case.name, mark, (log,), [processes.start(command, environment, log)])


def test_culprit_is_named_even_where_no_stack_may_be_read(stage: Stage) -> None:
    node = "node-unable"
    case = scenes.program("unreadable_rank", nodes=1, ranks=2)
    environ = {"HANGWATCH_TOKEN": agent_token(stage, node)}
    wrapper = WITHOUT_PTRACE if os.geteuid() == 0 else ()

    with scenes.agent(
        stage, node, "--server", stage.url, "--node", node, environ=environ, wrapper=wrapper
    ):
        job = start_on(stage, node, case)
        try:
            verdict = until(
                lambda: scenes.verdict_in(stage, case.name, State.SUSPECTED, State.HUNG),
                120,
                "the hang is suspected",
            )
            own = {"HANGWATCH_SERVER": stage.url, "HANGWATCH_TOKEN": stage.admin_token}
            stacks = commands.hangwatch("stacks", case.name, "--ranks", "1", **own)
            asked = stage.client.post(
                f"/jobs/{verdict['job']}/captures", {"ranks": "1", "kinds": ["stacks"]}
            )
            part = until(
                lambda: stage.client.get(f"/captures/{asked['id']}")["parts"], 90, "it is answered"
            )[0]
        finally:
            job.stop()

    assert (verdict["kind"], verdict["culprit_ranks"]) == ("missing_ranks", "1")
    assert verdict["culprits"][0]["where"] == ""
    assert not part["has_stacks"]
    assert "CAP_SYS_PTRACE" in part["reason"]
    assert "CAP_SYS_PTRACE" in part["remedy"]
    assert stacks.returncode == 2
    assert "CAP_SYS_PTRACE" in stacks.stderr
