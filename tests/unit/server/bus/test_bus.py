"""The contract of the bus: who hears what, and what happens to the slow."""

from __future__ import annotations

import asyncio
import gc

import pytest
from tests.unit.server.bus import buses

from hangwatch_server.bus import MemoryBus

pytestmark = pytest.mark.anyio


async def test_subscriber_hears_its_topics_from_the_moment_of_subscribing() -> None:
    bus = buses.new_bus()
    bus.publish("jobs", {"job": "before"})

    with bus.subscribe(("jobs", "nodes")) as subscription:
        bus.publish("jobs", {"job": "a"})
        bus.publish("job:a", {"job": "a"})
        bus.publish("nodes", {"node": "n"})
        heard = [await anext(subscription), await anext(subscription)]

    assert [event.topic for event in heard] == ["jobs", "nodes"]
    assert heard[0].data == {"job": "a"}
    assert heard[0].number < heard[1].number


async def test_slow_subscriber_loses_the_oldest_events_and_knows_how_many() -> None:
    bus = buses.new_bus(queue_size=2)
    subscription = bus.subscribe(("jobs",))

    for name in "abcde":
        bus.publish("jobs", {"job": name})
    first = await anext(subscription)

    assert first.data == {"job": "d"}
    assert subscription.dropped == 3


async def test_waiting_subscriber_is_woken_by_an_event() -> None:
    bus = buses.new_bus()
    with bus.subscribe(("jobs",)) as subscription:
        waiting = asyncio.create_task(subscription.next(30))
        await asyncio.sleep(0)
        bus.publish("jobs", {"job": "a"})
        event = await waiting

    assert event is not None
    assert event.data == {"job": "a"}


async def test_next_gives_none_when_nothing_comes() -> None:
    bus = buses.new_bus()

    with bus.subscribe(("jobs",)) as subscription:
        assert await subscription.next(0.001) is None


async def test_closing_the_bus_ends_every_subscription() -> None:
    bus = buses.new_bus()
    subscription = bus.subscribe(("jobs",))
    waiting = asyncio.create_task(_all(subscription))
    await asyncio.sleep(0)

    bus.close()

    assert await waiting == []


async def test_forgotten_subscription_is_not_fed_for_ever() -> None:
    bus = MemoryBus()
    bus.subscribe(("jobs",))
    gc.collect()

    bus.publish("jobs", {"job": "a"})
    bus.publish("jobs", {"job": "b"})

    assert not bus._topics


async def _all(subscription) -> list[object]:  # type: ignore[no-untyped-def]
    return [event async for event in subscription]


async def test_who_reads_the_state_anyway_need_not_hear_every_event_before_it() -> None:
    bus = buses.new_bus()
    with bus.subscribe(("jobs",)) as subscription:
        for name in "abc":
            bus.publish("jobs", {"job": name})
        subscription.skip()
        bus.publish("jobs", {"job": "d"})

        assert (await anext(subscription)).data == {"job": "d"}
