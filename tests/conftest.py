"""Fixtures for every test: a scrubbed environment, and the async backend."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Properties are never timed: a busy machine must not fail them. Each run draws the same examples,
# so that a failure is of the change it comes with; `--hypothesis-profile search` draws new ones.
BUSY = (HealthCheck.too_slow,)
settings.register_profile("search", deadline=None, suppress_health_check=BUSY, print_blob=True)
settings.register_profile("same", settings.get_profile("search"), derandomize=True)
settings.load_profile("same")


FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright keeps an event loop running, and then none can be started.

    Where several processes share the tests, each file is one's own, for the servers it starts; so
    is all of acceptance, which has one stage.
    """
    items.sort(key=lambda item: item.path.is_relative_to(FOLDER / "web"))
    for item in items:
        folder = item.path.relative_to(FOLDER).parts[0]
        name = folder if folder == "acceptance" else str(item.path.relative_to(FOLDER))
        item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(autouse=True, scope="session")
def _scrubbed_environment() -> None:
    """No setting of the person who runs the tests may reach them."""
    for name in [name for name in os.environ if name.startswith("HANGWATCH_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
