"""The flags --server, --token and --ca-file of every client command, and the client they give."""

from __future__ import annotations

import argparse
import os

from hangwatch_agent import client, settings
from hangwatch_agent.commands import flags
from hangwatch_agent.settings import AgentSettings

_KEYS = frozenset({"server", "token", "ca_file"})


def add(parser: argparse.ArgumentParser) -> None:
    flags.add(parser, AgentSettings, only=_KEYS)
    parser.add_argument("--json", action="store_true", help="print the server's answer as JSON")


def connect(arguments: argparse.Namespace) -> client.Client:
    """A client by flags, environment and settings file; a server on this machine by default."""
    found = settings_of(arguments)
    return client.Client(found.server or client.DEFAULT_SERVER, found.token, found.ca_file)


def settings_of(arguments: argparse.Namespace) -> AgentSettings:
    """What the flags, the environment and the settings file say together."""
    return settings.load(
        AgentSettings,
        known=arguments.known_keys,
        flags=flags.values(arguments, AgentSettings),
        environ=os.environ,
        toml=flags.config_file(arguments),
    )
