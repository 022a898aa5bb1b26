"""A packed stream: each message is whole when its bytes have come, and repeats cost little."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

from hangwatch_server.pages import packing

FRAGMENT = "data: " + "".join(f"<td>{hash((n, 7)) % 9**9}</td>" for n in range(400))


async def _packed(*messages: str) -> list[bytes]:
    async def given() -> AsyncIterator[str]:
        for message in messages:
            yield message

    return [part async for part in packing.packed(given())]


def test_each_message_can_be_read_before_the_next_one_comes() -> None:
    parts = asyncio.run(_packed("data: one\n\n", "data: two\n\n"))
    reader = zlib.decompressobj(zlib.MAX_WBITS + 16)

    assert reader.decompress(parts[0]).decode().endswith("data: one\n\n")
    assert reader.decompress(parts[1]).decode().endswith("\ndata: two\n\n")
    reader.decompress(parts[2])
    assert reader.eof


def test_a_fragment_that_was_sent_before_costs_little() -> None:
    first, again, _ = asyncio.run(_packed(FRAGMENT, FRAGMENT.replace("7</td>", "8</td>", 1)))

    assert len(again) < len(first) / 10


def test_the_packed_size_of_the_same_message_varies() -> None:
    parts = asyncio.run(_packed(*["data: same\n\n"] * 40))

    assert len({len(part) for part in parts[1:-1]}) > 5
