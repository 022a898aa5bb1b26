"""The `hangwatch` command: its parser, the commands that need the server, and the error boundary.

This is the one place of the agent that may import the server, and only inside the commands that
need it, so that training nodes can do without the server's packages.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import hangwatch_agent
from hangwatch_agent import client, settings
from hangwatch_agent.commands import connection, flags, jobs, node, output, tokens
from hangwatch_agent.commands.flags import Commands
from hangwatch_agent.errors import AgentError
from hangwatch_agent.settings import AgentSettings
from hangwatch_server.errors import HangwatchError  # standard library only, like settings
from hangwatch_server.settings import ServerSettings

FAILED = 2  # 1 belongs to `check`: the job is hung
INTERRUPTED = 130


class MissingExtraError(AgentError):
    """A command of the server on a machine that has only the agent."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its code; errors are one sentence on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a C locale cannot write every job's name
    arguments = parser().parse_args(argv)
    try:
        code = arguments.handler(arguments)
        sys.stdout.flush()
    except (AgentError, HangwatchError) as error:
        code = _fail(str(error))
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        # The process boundary: people get a sentence; who asked for more gets the traceback.
        if arguments.debug:
            traceback.print_exc()
        code = _fail(
            f"a defect of Hangwatch: {_words(error)}; run it again with --debug, report it"
        )
    sys.exit(code)


def parser() -> argparse.ArgumentParser:
    """All commands and flags."""
    top = argparse.ArgumentParser(
        prog="hangwatch",
        description="Find the rank that holds up a distributed PyTorch job, and what it is doing.",
    )
    top.add_argument(
        "--version", action="version", version=f"hangwatch {hangwatch_agent.__version__}"
    )
    top.set_defaults(
        config=None,
        debug=False,
        known_keys=settings.keys(AgentSettings) | settings.keys(ServerSettings),
    )
    commands = top.add_subparsers(dest="command_name", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_simulate(commands)
    _add_serve(commands)
    _add_ready(commands)
    node.add(commands)
    jobs.add(commands)
    tokens.add(commands)
    _add_diagnose(commands)
    _add_config(commands)
    _add_db(commands)
    _add_everywhere(top)
    return top


def _add_everywhere(parser: argparse.ArgumentParser) -> None:
    """The flags that mean the same before and after the name of a command."""
    keep = argparse.SUPPRESS  # so that an inner parser's default does not undo the outer's value
    parser.add_argument("--config", metavar="FILE", default=keep, help="TOML file with settings")
    parser.add_argument("--debug", action="store_true", default=keep, help="show tracebacks")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _add_everywhere(inner)


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser("demo", help="a server, two agents and a real job that hangs")
    demo.add_argument("--case", help="which hang; see --list")
    demo.add_argument("--once", action="store_true", help="exit when the verdict is in")
    demo.add_argument("--list", action="store_true", help="list the cases")
    demo.set_defaults(handler=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    with _server_packages():
        from hangwatch_server.demo.main import main as demo
    return demo(
        case_name=arguments.case,
        once=arguments.once,
        list_only=arguments.list,
        connect=client.Client,
    )


def _add_simulate(commands: Commands) -> None:
    simulate = commands.add_parser(
        "simulate", help="a made-up job of any size that hangs, over the real wire"
    )
    simulate.add_argument("--ranks", type=int, default=64, metavar="N", help="default: 64")
    simulate.add_argument(
        "--nodes",
        type=int,
        metavar="N",
        help="how many machines they run on; default: 8 ranks each",
    )
    simulate.add_argument(
        "--fault", default="dataloader", help="what befalls it; see --list (default: dataloader)"
    )
    simulate.add_argument(
        "--fault-after", type=float, default=20.0, metavar="S", help="seconds of progress before it"
    )
    simulate.add_argument("--job", default="", help="name of the job; default: of size and fault")
    simulate.add_argument("--once", action="store_true", help="exit when the verdict is in")
    simulate.add_argument("--list", action="store_true", help="list the faults")
    flags.add(simulate, AgentSettings, only=frozenset({"server", "token"}))
    simulate.set_defaults(handler=_simulate)


def _simulate(arguments: argparse.Namespace) -> int:
    with _server_packages():
        from hangwatch_server.simulate import main as simulate
    wanted = simulate.Wanted(
        ranks=arguments.ranks,
        nodes=arguments.nodes,
        fault=arguments.fault,
        fault_after_s=arguments.fault_after,
        job=arguments.job,
    )
    if arguments.list:
        return simulate.show_faults()
    # Only the flag: a server that the environment names is somebody's real one.
    if not arguments.server:
        return simulate.on_own_server(wanted, once=arguments.once, connect=client.Client)
    found = connection.settings_of(arguments)
    target = simulate.Target(found.server, found.token, connection.connect(arguments))
    return simulate.on_server(wanted, target, once=arguments.once)


def _add_serve(commands: Commands) -> None:
    serve = commands.add_parser("serve", help="run the server")
    flags.add(serve, ServerSettings)
    serve.set_defaults(handler=_serve)


def _serve(arguments: argparse.Namespace) -> int:
    # Read first: what is wrong with a setting is said at once, before the packages are loaded.
    found, origins = _server_settings(arguments), _origins(arguments)
    with _server_packages():
        from hangwatch_server import serve
    serve.run(found, origins)
    return 0


def _add_ready(commands: Commands) -> None:
    ready = commands.add_parser(
        "ready",
        help="whether the server with these settings can do its work",
        description="Asks the server on this machine that runs with these settings. Exit code 0: "
        "it can do its work; 1: it cannot, or does not answer. For health checks of containers, "
        "and between two restarts.",
    )
    flags.add(ready, ServerSettings, only=frozenset({"host", "port", "tls_cert"}))
    ready.set_defaults(handler=_ready)


def _ready(arguments: argparse.Namespace) -> int:
    from hangwatch_server import ready  # standard library only: no extra can be missing

    return ready.run(_server_settings(arguments))


def _add_diagnose(commands: Commands) -> None:
    diagnose = commands.add_parser(
        "diagnose",
        help="say who holds a job up by files alone: recorder dumps, NCCL RAS, py-spy output",
        description="Reads flight recorder dumps (JSON or pickle, never unpickled), answers of "
        "ncclras (JSON or text) and output of py-spy dump (JSON or text). The number in a file's "
        "name is its rank. Exit code 0: nobody holds up another; 1: somebody does; 2: these files "
        "cannot tell. No server is needed.",
    )
    diagnose.add_argument("files", nargs="+", metavar="FILE", help="a file, or a folder of them")
    diagnose.add_argument("--json", action="store_true", help="print the whole report as JSON")
    diagnose.set_defaults(handler=_diagnose)


def _diagnose(arguments: argparse.Namespace) -> int:
    with _server_packages():
        from hangwatch_server import offline_command
    return offline_command.run(arguments.files, as_json=arguments.json, show=output.text)


def _add_db(commands: Commands) -> None:
    db = commands.add_parser("db", help="look after the database")
    actions = db.add_subparsers(dest="action", required=True, metavar="ACTION")
    upgrade = actions.add_parser("upgrade", help="bring its schema up to this version")
    flags.add(upgrade, ServerSettings, only=frozenset({"data_dir", "database_url"}))
    upgrade.set_defaults(handler=_upgrade)


def _upgrade(arguments: argparse.Namespace) -> int:
    found = _server_settings(arguments)
    with _server_packages():
        from hangwatch_server import db_command
    return db_command.upgrade(found)


def _add_config(commands: Commands) -> None:
    config = commands.add_parser("config", help="show every setting and where its value comes from")
    config.add_argument("--json", action="store_true", help="as JSON")
    config.set_defaults(handler=_config)


def _config(arguments: argparse.Namespace) -> int:
    rows = [*_effective(arguments, ServerSettings), *_effective(arguments, AgentSettings)]
    unique = {key: (key, value, source) for key, value, source in rows}
    if arguments.json:
        found = [dict(zip(("key", "value", "source"), row, strict=True)) for row in unique.values()]
        print(json.dumps(found, indent=2))
    else:
        output.table(("SETTING", "VALUE", "SOURCE"), list(unique.values()))
    return 0


def _effective(
    arguments: argparse.Namespace, schema: type[AgentSettings] | type[ServerSettings]
) -> list[tuple[str, str, str]]:
    toml = flags.config_file(arguments)
    known = arguments.known_keys
    found = settings.load(schema, known=known, flags={}, environ=os.environ, toml=toml)
    origins = settings.sources(schema, known=known, flags={}, environ=os.environ, toml=toml)
    return settings.render(found, origins)


def _server_settings(arguments: argparse.Namespace) -> ServerSettings:
    return settings.load(
        ServerSettings,
        known=arguments.known_keys,
        flags=flags.values(arguments, ServerSettings),
        environ=os.environ,
        toml=flags.config_file(arguments),
    )


def _origins(arguments: argparse.Namespace) -> dict[str, str]:
    """Where each setting of the server that is not a default came from."""
    return settings.sources(
        ServerSettings,
        known=arguments.known_keys,
        flags=flags.values(arguments, ServerSettings),
        environ=os.environ,
        toml=flags.config_file(arguments),
    )


@contextmanager
def _server_packages() -> Iterator[None]:
    """Turn a missing package into the sentence that says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hangwatch"):
            raise
        raise MissingExtraError(
            f"this command needs the server's packages ({error.name} is missing): "
            "pip install 'hangwatch[server]'"
        ) from error


def _fail(text: str) -> int:
    output.note(f"hangwatch: {text}")
    return FAILED


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
