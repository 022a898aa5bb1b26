"""Frames of many agents and everybody else share the event loop."""

from __future__ import annotations

import asyncio

import pytest

from hangwatch_server.ingest.turns import SLICE_S, Turns

pytestmark = pytest.mark.anyio


class Work:
    """A clock that moves only as frames are read."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.log: list[str] = []
        self.turns = Turns(lambda: self.now_s)

    async def read(self, name: str, cost_s: float) -> None:
        async with self.turns:
            self.log.append(name)
            self.now_s += cost_s

    async def ask(self) -> None:
        for step in range(3):
            self.log.append(f"step {step}")
            await asyncio.sleep(0)


async def test_a_request_goes_on_while_many_frames_wait() -> None:
    work = Work()

    frames = [work.read(str(number), SLICE_S) for number in range(50)]
    await asyncio.gather(*frames, work.ask())

    assert [name for name in work.log if name.isdigit()] == [str(number) for number in range(50)]
    assert work.log.index("step 2") < 10


async def test_a_frame_that_is_refused_ends_its_turn() -> None:
    work = Work()

    async def refuse() -> None:
        async with work.turns:
            raise ValueError("malformed")

    with pytest.raises(ValueError, match="malformed"):
        await refuse()
    await work.read("next", 0.0)

    assert work.log == ["next"]
