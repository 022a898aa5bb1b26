"""Merged trees at hand for a short while, since folding one open asks for the same tree again.

A part may still come late, perhaps to another replica: so what is not told apart by its parts does
not stay for long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from hangwatch_server.model import Tree

KEEP_S = 10.0
KEEP_STAMPED_S = 86_400.0  # of a key that is another one as soon as a part comes
MAX_TREES = 8


class TreeShelf:
    """The last few trees that were asked for."""

    def __init__(self) -> None:
        self._trees: OrderedDict[Hashable, tuple[float, Tree]] = OrderedDict()
        self._making: dict[Hashable, asyncio.Future[Tree]] = {}

    async def get(
        self,
        key: Hashable,
        make: Callable[[], Awaitable[Tree]],
        now_s: float,
        keep_s: float = KEEP_S,
    ) -> Tree:
        """The tree of this key, made now unless it was made before and not too long ago.

        Who asks while it is being made waits for that one, also when the first asker has gone.
        """
        found = self._trees.get(key)
        if found is not None and now_s - found[0] < keep_s:
            return found[1]
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(make())
            making.add_done_callback(lambda made: self._keep(key, made, now_s))
        return await asyncio.shield(making)

    def _keep(self, key: Hashable, made: asyncio.Future[Tree], now_s: float) -> None:
        del self._making[key]
        if made.cancelled() or made.exception() is not None:
            return
        self._trees[key] = (now_s, made.result())
        self._trees.move_to_end(key)
        while len(self._trees) > MAX_TREES:
            self._trees.popitem(last=False)
