"""Fixtures for every test: a scrubbed environment, and the async backend."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from hangwatch_server.demo import processes

# Properties are never timed: a busy machine must not fail them. Each run draws the same examples,
# so that a failure is of the change it comes with; `--hypothesis-profile search` draws new ones.
BUSY = (HealthCheck.too_slow,)
settings.register_profile("search", deadline=None, suppress_health_check=BUSY, print_blob=True)
settings.register_profile("same", settings.get_profile("search"), derandomize=True)
settings.load_profile("same")


FOLDER = Path(__file__).parent
RUN_MARK = "PYTEST_XDIST_TESTRUNUID"  # in the environment of all that a run's processes start
_run = pytest.StashKey[str]()


# The files of each share a server, or a stage, that takes seconds of both cores to start.
TOGETHER = (
    "tests/acceptance/",
    "tests/integration/access/",
    "tests/integration/api/",
    "tests/integration/cli/",
    "tests/integration/pages/",
)


class ByFile(LoadScopeScheduling):
    """Each file is one process's own, for the servers it starts; so is a folder that has one."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((folder for folder in TOGETHER if path.startswith(folder)), path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


def pytest_configure_node(node: WorkerController) -> None:
    node.config.stash[_run] = node.workerinput["testrunuid"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """An interrupted run has killed its processes: the servers and jobs they started end here."""
    if run := config.stash.get(_run, ""):
        processes.end_marked(RUN_MARK, run)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright keeps an event loop running, and then none can be started."""
    items.sort(key=lambda item: item.path.is_relative_to(FOLDER / "web"))


@pytest.fixture(autouse=True, scope="session")
def _scrubbed_environment() -> None:
    """No setting of the person who runs the tests may reach them."""
    for name in [name for name in os.environ if name.startswith("HANGWATCH_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
