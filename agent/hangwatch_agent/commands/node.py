"""`agent` and `run`: what happens on a training node."""

from __future__ import annotations

import argparse
import asyncio
import os

from hangwatch_agent import settings
from hangwatch_agent.commands import flags
from hangwatch_agent.commands.flags import Commands
from hangwatch_agent.settings import AgentSettings


def add(commands: Commands) -> None:
    agent = commands.add_parser("agent", help="watch the ranks of this node")
    flags.add(agent, AgentSettings)
    agent.set_defaults(handler=_agent)
    run = commands.add_parser(
        "run",
        help="start a job with the probe in each of its ranks",
        usage="hangwatch run [--job NAME] [--run-dir DIR] [--call-sites] -- COMMAND …",
    )
    run.add_argument("--job", help="name of the job; default: the script's")
    flags.add(run, AgentSettings, only=frozenset({"run_dir"}))
    run.add_argument(
        "--call-sites",
        action="store_true",
        help="note where each collective is called, so that a verdict can name the line of a call "
        "that was skipped some time ago; costs about 4 µs per call",
    )
    run.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="what starts the job, as you would type it without Hangwatch",
    )
    run.set_defaults(handler=_run)


def _agent(arguments: argparse.Namespace) -> int:
    from hangwatch_agent import service  # not for every command: it brings websockets and psutil

    asyncio.run(service.run(_settings(arguments)))
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from hangwatch_agent import run

    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    run.main(
        arguments.job,
        _settings(arguments).run_dir,
        command,
        has_call_sites=arguments.call_sites,
    )


def _settings(arguments: argparse.Namespace) -> AgentSettings:
    return settings.load(
        AgentSettings,
        known=arguments.known_keys,
        flags=flags.values(arguments, AgentSettings),
        environ=os.environ,
        toml=flags.config_file(arguments),
    )
