"""One stage for all real jobs: a server with its own Postgres and two agents; a table of times."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangwatch_agent import client
from hangwatch_server.demo import cases
from hangwatch_server.demo.conductor import Conductor, Outcome
from hangwatch_server.demo.stage import Stage, make_folder

_outcomes: list[Outcome] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.acceptance)


@contextlib.contextmanager
def new_stage() -> Iterator[Stage]:
    """A stage in a folder of its own; pytest's would hide the data from the database's own user."""
    folder = make_folder(Path(tempfile.mkdtemp(prefix="hangwatch-test-")))
    running = Stage(folder, client.Client)
    try:
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_stage() -> Iterator[Stage]:
    """A stage that the test may break: nothing is started yet."""
    with new_stage() as running:
        yield running


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with new_stage() as running:
        running.start_server()
        running.start_agents()
        yield running


@pytest.fixture(scope="session")
def conductor(stage: Stage) -> Iterator[Conductor]:
    playing = Conductor(stage, cases.load())
    yield playing
    playing.close()


@pytest.fixture(scope="session")
def outcomes() -> list[Outcome]:
    return _outcomes


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _outcomes:
        return
    terminalreporter.section("seconds from last progress to the verdict")
    for outcome in _outcomes:
        named, hung = (
            "    -" if value is None else f"{value:5.1f}"
            for value in (outcome.named_s, outcome.hung_s)
        )
        terminalreporter.write_line(
            f"{outcome.case.name:20} {outcome.case.evidence:8} named {named}  hung {hung}  "
            f"{' > '.join(outcome.states)}"
        )
