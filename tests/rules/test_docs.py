"""Holds the documentation to the code: what exists is in the reference, what is written exists.

Nothing is started: settings, parser, routes and metrics are imported and compared with the pages.
Whether the prose is right, no test can say.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from fastapi.routing import APIWebSocketRoute

from hangwatch_agent import cli, run
from hangwatch_agent import settings as agent_settings
from hangwatch_agent.settings import AgentSettings
from hangwatch_server import metrics, model
from hangwatch_server.api import problems
from hangwatch_server.app import create_app
from hangwatch_server.demo import cases
from hangwatch_server.ingest import socket as agents
from hangwatch_server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SHOWN_COMMAND = re.compile(r"^ {4,}(?:\w+=\S+ )*(hangwatch .*)$|`(hangwatch [^`]+)`", re.MULTILINE)
SETTINGS = [
    pytest.param(item, id=f"{schema.__name__}.{item.name}")
    for schema in (ServerSettings, AgentSettings)
    for item in dataclasses.fields(schema)
]


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program beside the pages, which imports its neighbours as a script does."""
    monkeypatch.syspath_prepend(REFERENCE)
    return importlib.import_module("generate")


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsers(parser: argparse.ArgumentParser, name: str = "hangwatch") -> Iterator[tuple[str, ...]]:
    """(command, each of its options) for every command."""
    yield (name, *(option for action in parser._actions for option in action.option_strings))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from parsers(inner, f"{name} {word}")


OPTIONS = {name: set(options) for name, *options in parsers(cli.parser())}


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*.md")), ids=short)
def test_reference_page_is_what_the_code_says(path: Path, generator: ModuleType) -> None:
    written = path.read_text(encoding="utf-8")

    assert written == generator.updated(written), "run: python docs/reference/generate.py"


def test_committed_openapi_document_is_what_the_server_says(generator: ModuleType) -> None:
    written = (REFERENCE / "openapi.json").read_text(encoding="utf-8")

    assert written == generator.rest.openapi_text(), "run: python docs/reference/generate.py"


@pytest.mark.parametrize("item", SETTINGS)
def test_setting_is_explained_with_a_reason_for_its_default(
    item: dataclasses.Field[object],
) -> None:
    text = page("settings.md")

    assert item.metadata["help"]
    assert item.metadata["why"]
    for spelling in (item.name, agent_settings.PREFIX + item.name.upper()):
        assert f"`{spelling}`" in text
    assert item.metadata["why"] in text


@pytest.mark.parametrize("key", sorted(agent_settings.EXPORTED_KEYS))
def test_variable_of_the_job_is_explained(key: str) -> None:
    assert f"`{agent_settings.PREFIX}{key.upper()}`" in page("settings.md")


def test_every_route_is_in_the_reference() -> None:
    text = page("api.md")
    document = create_app(ServerSettings()).openapi()
    sockets = [route.path for route in agents.router.routes if isinstance(route, APIWebSocketRoute)]

    for path, operations in document["paths"].items():
        for method in operations:
            assert f"### `{method.upper()} {path}`" in text
    assert sockets
    for path in sockets:
        assert f"`WS {path}`" in text


@pytest.mark.parametrize("slug", sorted(problems._TITLES))
def test_type_of_problem_is_explained(slug: str) -> None:
    assert f"`{problems.TYPE_PREFIX}{slug}`" in page("api.md")


def test_no_route_that_needs_a_token_is_shown_as_open() -> None:
    """The generator reads scopes from the routes' dependencies, and must not lose one silently."""
    found = re.findall(r"### `(.*)`\n\n.* Scope: none\.", page("api.md"))

    assert found == ["GET /healthz", "GET /readyz", "POST /login"]


@pytest.mark.parametrize("metric", [one.name for one in metrics.registry.collect()])
def test_metric_is_in_the_reference(metric: str) -> None:
    assert re.search(rf"`{metric}(_total)?`", page("metrics.md"))


@pytest.mark.parametrize("command", sorted(OPTIONS))
def test_command_and_its_options_are_in_the_reference(command: str) -> None:
    text = page("cli.md")

    assert f"### `{command}`" in text
    for option in OPTIONS[command]:
        assert re.search(rf"`{option}[ `]", text), option


@pytest.mark.parametrize(
    "code", [0, 1, cli.FAILED, cli.INTERRUPTED, run.NOT_EXECUTABLE, run.NOT_FOUND]
)
def test_exit_code_is_explained(code: int) -> None:
    assert f"\n| {code} | " in page("cli.md")


@pytest.mark.parametrize("word", [*model.State, *model.Kind, *model.Condition])
def test_word_of_a_verdict_is_in_the_runbook(word: str) -> None:
    assert f"`{word}`" in (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("#"):
            assert (path.parent / target.partition("#")[0]).exists(), target


def test_every_page_is_reached_from_the_index() -> None:
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text(encoding="utf-8")
    linked = {(docs / target.partition("#")[0]).resolve() for target in LINK.findall(index)}

    assert {path.resolve() for path in docs.rglob("*.md")} - {docs / "index.md"} <= linked


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_shown_commands_exist_with_their_flags(path: Path) -> None:
    for indented, quoted in SHOWN_COMMAND.findall(path.read_text(encoding="utf-8")):
        own = re.split(r" --(?: |$)", indented or quoted)[0]  # what follows is the job's command
        words = shlex.split(own, comments=True)
        name = " ".join(words[:3]) if " ".join(words[:3]) in OPTIONS else " ".join(words[:2])

        assert name in OPTIONS or words[1] in OPTIONS["hangwatch"], f"{name}: no such command"
        for word in words[2:]:
            if word.startswith("--"):
                assert word.partition("=")[0] in OPTIONS[name], f"{name} has no {word}"


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_shown_make_targets_and_programs_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    for target in re.findall(r"(?:^ {4,}|`)make ([a-z]+)", text, re.MULTILINE):
        assert f"\n{target}:" in makefile, target
    for program in re.findall(r"python ((?:bench|docs)/[\w/]+\.py)", text):
        assert (ROOT / program).is_file(), program


def test_readme_and_quickstart_use_the_default_port() -> None:
    for path in (ROOT / "README.md", ROOT / "docs" / "quickstart.md"):
        ports = set(re.findall(r"://[\w.]+:(\d+)", path.read_text(encoding="utf-8")))

        assert ports == {str(ServerSettings().port)}, short(path)


@pytest.mark.parametrize("case", cases.load(), ids=lambda case: case.name)
def test_case_of_the_demo_is_in_the_reference(case: cases.Case) -> None:
    assert f"| `{case.name}` | {case.title} |" in page("cases.md")
