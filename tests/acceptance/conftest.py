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
    """Mark this folder's tests and ask for the cases last: they play in the background."""
    folder = Path(__file__).parent
    own = [item for item in items if item.path.is_relative_to(folder)]
    for item in own:
        item.add_marker(pytest.mark.acceptance)
    own.sort(key=_plays_cases)
    places = [place for place, item in enumerate(items) if item in set(own)]
    for place, item in zip(places, own, strict=True):
        items[place] = item


def _plays_cases(item: pytest.Item) -> bool:
    return "conductor" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def _cases_play(request: pytest.FixtureRequest) -> None:
    """Start the cases with the first test of this folder, if any test will ask for them."""
    if any(_plays_cases(item) for item in request.session.items):
        request.getfixturevalue("conductor")


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
