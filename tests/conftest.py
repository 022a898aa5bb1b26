"""Fixtures for every test: a scrubbed environment, and the async backend."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Properties are never timed: a busy machine must not fail them. Each run draws the same examples,
# so that a failure is of the change it comes with; `--hypothesis-profile search` draws new ones.
BUSY = (HealthCheck.too_slow,)
settings.register_profile("search", deadline=None, suppress_health_check=BUSY, print_blob=True)
settings.register_profile("same", settings.get_profile("search"), derandomize=True)
settings.load_profile("same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright keeps an event loop running, and then none can be started."""
    items.sort(key=lambda item: "tests/web/" in item.nodeid)


@pytest.fixture(autouse=True, scope="session")
def _scrubbed_environment() -> None:
    """No setting of the person who runs the tests may reach them."""
    for name in [name for name in os.environ if name.startswith("HANGWATCH_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
