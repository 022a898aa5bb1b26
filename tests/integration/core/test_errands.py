"""An errand of the watch that fails, in whatever way, leaves the watching as it was."""

from __future__ import annotations

import msgspec
import pytest
from tests.integration.core import house, synthetic
from tests.integration.core.waiting import until

from hangwatch_agent import wire

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


class BareJob(synthetic.Job):
    """Nobody's probe tells anything, so that NCCL RAS is to be asked."""

    def beat(self, rank: int) -> wire.RankBeat:
        beat = super().beat(rank)
        return msgspec.structs.replace(beat, depth=wire.Depth.BARE, groups=(), beat_age_s=None)


async def test_agent_that_cannot_be_told_to_ask_ras_does_not_end_the_watch(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def tell(node: str, command: wire.AskRas) -> bool:
        told.append(node)
        raise ValueError("unforeseen")

    async def times() -> int:
        return len(told)

    async with house.open_house(database_url, speed=50.0) as server:
        monkeypatch.setattr(server.services.captures, "tell", tell)
        job = BareJob(server.clock.monotonic_s)
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, (1, 2, 3)):
            await until(times, lambda count: count >= 2)
            failing = server.services.background.failing()

    assert set(told) == {"node-a"}
    assert failing == ()
