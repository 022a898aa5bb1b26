"""The contracts of board and bus, kept over a real Redis: the same tests as those in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support import redis as support
from tests.support.over_redis import Aside, BoardOverRedis, BusOverRedis
from tests.unit.server.board import beats
from tests.unit.server.board.test_board import *  # noqa: F403
from tests.unit.server.board.test_kept_entries import *  # noqa: F403
from tests.unit.server.board.test_ras import *  # noqa: F403
from tests.unit.server.bus import buses
from tests.unit.server.bus.test_bus import *  # noqa: F403

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


@pytest.fixture(autouse=True, scope="module")
def _over_redis() -> Iterator[None]:
    """Every board and bus that the tests make is one of two servers."""
    made: list[BoardOverRedis | BusOverRedis] = []
    aside = Aside()

    def board() -> BoardOverRedis:
        made.append(BoardOverRedis(aside, redis.url))
        return made[-1]  # type: ignore[return-value]

    def bus(queue_size: int) -> BusOverRedis:
        made.append(BusOverRedis(aside, redis.url, queue_size))
        return made[-1]  # type: ignore[return-value]

    with support.server() as redis, pytest.MonkeyPatch.context() as patch:
        patch.setattr(beats.Maker, "make", staticmethod(board))
        patch.setattr(buses.Maker, "make", staticmethod(bus))
        yield
        for one in made:
            one.end()
    aside.close()
    assert made, "the tests made no board: they would have tested that in memory"
