"""The commands and their options as a page, from the parser of the one entry point."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tables import table

from hangwatch_agent import cli
from hangwatch_agent.client import EXIT_CODES

EVERYWHERE = {"--config", "--debug", "--help"}
FEW_FLAGS = 4  # settings that a command's own table shows; more are on the page of settings


def cli_sections() -> Iterator[str]:
    for name, parser, summary in commands(cli.parser(), "hangwatch"):
        yield from command(name, parser, summary)


def commands(
    parser: argparse.ArgumentParser, name: str, summary: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Every command with its parser and help, the outermost first."""
    yield name, parser, summary or str(parser.description)
    for action in parser._actions:  # argparse has no public way to its subparsers
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help for choice in action._choices_actions}
            for word, inner in action.choices.items():
                yield from commands(inner, f"{name} {word}", str(summaries[word]))


def command(name: str, parser: argparse.ArgumentParser, summary: str) -> Iterator[str]:
    yield f"### `{name}`"
    yield ""
    yield summary[:1].upper() + summary[1:].rstrip(".") + "."
    yield ""
    flags = settings_flags(parser)
    shown = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction)
        and not (len(flags) > FEW_FLAGS and action in flags)
        and (name == "hangwatch" or not EVERYWHERE & set(action.option_strings))
    ]
    if shown:
        rows = ((invocation(one), str(one.help or "").replace("%%", "%")) for one in shown)
        yield from table(("argument", "what"), rows)
        yield ""
    if len(flags) > FEW_FLAGS:
        names = ", ".join(f"`{option}`" for one in flags for option in one.option_strings)
        yield f"Its settings are explained on [their page](settings.md): {names}."
        yield ""


def settings_flags(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The flags that were made from a settings dataclass."""
    groups = (group for group in parser._action_groups if group.title == "settings")
    return [action for group in groups for action in group._group_actions]


def invocation(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest.upper()}`"
    value = ""
    if action.nargs != 0:
        value = " " + (
            "{" + ",".join(action.choices) + "}"
            if action.choices
            else str(action.metavar or action.dest.upper())
        )
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)


def check_table() -> Iterator[str]:
    yield from table(
        ("state of the job", "`hangwatch check` exits with"),
        ((f"`{state}`", f"{code}") for state, code in EXIT_CODES.items()),
    )
