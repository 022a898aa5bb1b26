"""Fixtures of the tests with several servers: a real Redis beside the real Postgres."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support import redis as support
from tests.support.redis import RedisServer


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A Redis of this test's own, since tests stop and fill it."""
    with support.server() as running:
        yield running
