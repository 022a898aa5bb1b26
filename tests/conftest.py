"""Fixtures for every test: a scrubbed environment, and the async backend."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def _scrubbed_environment() -> None:
    """No setting of the person who runs the tests may reach them."""
    for name in [name for name in os.environ if name.startswith("HANGWATCH_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
