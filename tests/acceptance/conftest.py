"""One stage for all real jobs: a server with its own Postgres and two agents; a table of times."""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangwatch_agent import client
from hangwatch_server.demo import cases
from hangwatch_server.demo.cases import Evidence
from hangwatch_server.demo.conductor import Conductor, Outcome
from hangwatch_server.demo.stage import Stage, make_folder

_outcomes: list[Outcome] = []


FOLDER = Path(__file__).parent
# These compute on one core and wait for nothing; the cases, once started, mostly wait.
COMPUTING = tuple(FOLDER.parent / name for name in ("unit", "property", "rules"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark this folder's tests, and order all so that the cases play beside what goes well with it.

    They begin with the first test of this folder, and are asked for after all others of it.
    """
    own = [item for item in items if item.path.is_relative_to(FOLDER)]
    for item in own:
        item.add_marker(pytest.mark.acceptance)
    beside = [item for item in own if not _plays_cases(item)]
    computing = [item for item in items if any(map(item.path.is_relative_to, COMPUTING))]
    cases = [item for item in own if _plays_cases(item)]
    first = [*beside[:1], *computing, *beside[1:], *cases] if cases else [*beside, *computing]
    chosen = set(first)
    items[:] = [*first, *(item for item in items if item not in chosen)]


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
def conductor(request: pytest.FixtureRequest, stage: Stage) -> Iterator[Conductor]:
    """Plays the cases that the selected tests ask for, and no others."""
    asked = {
        item.callspec.params["case"].name
        for item in request.session.items
        if isinstance(item, pytest.Function) and _plays_cases(item)
    }
    playing = Conductor(stage, [case for case in cases.load() if case.name in asked])
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
        terminalreporter.write_line(
            f"{outcome.case.name:20} {outcome.case.evidence:8} named {_seconds(outcome.named_s)}"
            f"  hung {_seconds(outcome.hung_s)}  {' > '.join(outcome.states)}"
        )
    by_evidence = {
        evidence: [outcome for outcome in _outcomes if outcome.case.evidence is evidence]
        for evidence in (Evidence.HARD, Evidence.FROZEN)
    }
    named = [outcome.named_s for outcome in _outcomes]
    terminalreporter.write_line(f"p90 of all: named {_seconds(_p90(named))}")
    for evidence, found in by_evidence.items():
        hung = _p90([outcome.hung_s for outcome in found])
        terminalreporter.write_line(f"p90 of {evidence}: hung {_seconds(hung)}")


def _seconds(value: float | None) -> str:
    return "    -" if value is None else f"{value:5.1f}"


def _p90(values: list[float | None]) -> float | None:
    """The value that nine of ten do not exceed (nearest rank)."""
    known = sorted(value for value in values if value is not None)
    return known[math.ceil(0.9 * len(known)) - 1] if known else None
