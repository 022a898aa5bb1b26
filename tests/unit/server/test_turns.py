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
        def work() -> None:
            self.log.append(name)
            self.now_s += cost_s

        await self.turns.take(work)

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


async def test_many_small_frames_are_read_at_once() -> None:
    work = Work()

    frames = [work.read(str(number), SLICE_S / 100) for number in range(50)]
    await asyncio.gather(*frames, work.ask())

    assert work.log.index("49") < work.log.index("step 2")


async def test_a_connection_that_ends_meanwhile_is_not_read() -> None:
    work = Work()

    reading = asyncio.create_task(work.read("gone", 0.0))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await work.read("next", 0.0)

    assert work.log[-1] == "next"


async def test_a_frame_that_is_refused_ends_its_turn() -> None:
    work = Work()

    def refuse() -> None:
        raise ValueError("malformed")

    with pytest.raises(ValueError, match="malformed"):
        await work.turns.take(refuse)
    await work.read("next", 0.0)

    assert work.log == ["next"]


async def test_the_longest_wait_for_a_turn_is_told_once() -> None:
    work = Work()

    await asyncio.gather(*[work.read(str(number), SLICE_S) for number in range(3)])

    assert work.turns.longest_wait_s() == pytest.approx(2 * SLICE_S)
    assert work.turns.longest_wait_s() == 0.0
