"""What waits to be told: ages, bounds, and nothing while nobody can be told."""

from __future__ import annotations

import asyncio

import pytest

from hangwatch_server.relay import letters
from hangwatch_server.relay.letters import Beat, Changed, Left, Letter
from hangwatch_server.relay.outbox import BATCH_BYTES, Outbox

pytestmark = pytest.mark.anyio


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def opened(clock: Clock | None = None, max_bytes: int = 10_000_000) -> Outbox:
    outbox = Outbox(clock or Clock(), max_bytes)
    outbox.open()
    return outbox


def taken(outbox: Outbox) -> list[Letter]:
    return [letters.letter(data) for data in outbox.take()]


def test_letter_is_told_with_the_time_it_has_waited_on_top_of_its_own_age() -> None:
    clock = Clock()
    outbox = opened(clock)
    outbox.put(Beat("node-a", b"frame", age_s=0.5))
    outbox.put(Left("node-b"))

    clock.now_s += 2.0

    assert taken(outbox) == [Beat("node-a", b"frame", age_s=2.5), Left("node-b")]
    assert taken(outbox) == []


def test_nothing_is_kept_while_nobody_can_be_told() -> None:
    outbox = Outbox(Clock())
    outbox.put(Left("node-a"))
    outbox.open()
    outbox.put(Left("node-b"))
    outbox.close()
    outbox.open()

    assert taken(outbox) == []
    assert outbox.size_bytes == 0


def test_too_much_is_dropped_and_known_to_be_dropped() -> None:
    outbox = opened(max_bytes=1000)
    outbox.put(Beat("node-a", b"x" * 900))
    outbox.put(Beat("node-a", b"y" * 900))

    assert outbox.is_lossy
    assert len(taken(outbox)) == 1


def test_batch_is_bounded_and_the_rest_goes_with_the_next_one() -> None:
    outbox = opened()
    for _ in range(3):
        outbox.put(Beat("node-a", b"x" * (BATCH_BYTES // 2)))

    assert [len(taken(outbox)), len(taken(outbox)), len(taken(outbox))] == [2, 1, 0]
    assert outbox.size_bytes == 0


async def test_who_has_much_to_say_waits_for_room() -> None:
    outbox = opened()
    for _ in range(3):
        outbox.put(Beat("node-a", b"x" * (BATCH_BYTES // 2)))
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    was_full = not waiting.done()

    outbox.take()
    await waiting

    assert was_full


def test_batch_survives_packing_small_and_large() -> None:
    for count in (1, 1000):
        outbox = opened()
        for number in range(count):
            outbox.put(Changed("jobs", {"job": str(number)}))
        batch = letters.Batch("one", 7, outbox.take())

        read = letters.batch(letters.pack(letters.encode(batch)))

        assert (read.replica, read.number, len(read.letters)) == ("one", 7, count)
        assert letters.letter(read.letters[0]) == Changed("jobs", {"job": "0"})


@pytest.mark.parametrize("data", [b"", b"\0", b"\0garbage", b"\1garbage", b"\2"])
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    with pytest.raises(letters.LetterError):
        letters.batch(data)
