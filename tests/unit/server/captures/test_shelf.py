"""Trees at hand: one making for all who ask at once, and none for what failed."""

from __future__ import annotations

import asyncio

import pytest

from hangwatch_server.captures.shelf import TreeShelf
from hangwatch_server.model import Tree

pytestmark = pytest.mark.anyio

TREE = Tree(capture="c1", roots=(), classes=(), missing=())


class Maker:
    """Counts how often a tree is made; each waits until `go`."""

    def __init__(self) -> None:
        self.times = 0
        self.go = asyncio.Event()

    async def __call__(self) -> Tree:
        self.times += 1
        await self.go.wait()
        return TREE


async def test_all_who_ask_while_a_tree_is_made_get_that_one() -> None:
    shelf, make = TreeShelf(), Maker()
    asked = [asyncio.ensure_future(shelf.get("c1", make, 0.0)) for _ in range(3)]
    await asyncio.sleep(0)

    make.go.set()

    assert await asyncio.gather(*asked) == [TREE] * 3
    assert make.times == 1


async def test_tree_is_made_to_its_end_though_its_first_reader_has_gone() -> None:
    shelf, make = TreeShelf(), Maker()
    first = asyncio.ensure_future(shelf.get("c1", make, 0.0))
    second = asyncio.ensure_future(shelf.get("c1", make, 0.0))
    await asyncio.sleep(0)

    first.cancel()
    make.go.set()

    assert await second is TREE
    assert await shelf.get("c1", make, 1.0) is TREE
    assert make.times == 1


async def test_failure_is_told_and_not_kept() -> None:
    shelf, make = TreeShelf(), Maker()
    make.go.set()

    async def fail() -> Tree:
        raise ConnectionError("the database is away")

    with pytest.raises(ConnectionError):
        await shelf.get("c1", fail, 0.0)

    assert await shelf.get("c1", make, 0.0) is TREE
