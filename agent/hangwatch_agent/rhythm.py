"""The moments at which the agent's loops wake: the same for all of them.

To wake costs more than most of what is done then, as another program has had the core and its
caches meanwhile. Loops that wake together pay for it once.
"""

from __future__ import annotations

import asyncio

TICK_S = 0.25


def wait_s(pause_s: float, now_s: float) -> float:
    """From `now_s` to the tick nearest to the end of `pause_s`; pauses under a tick are kept."""
    if pause_s < TICK_S:
        return pause_s
    return round((now_s + pause_s) / TICK_S) * TICK_S - now_s


async def rest(pause_s: float) -> None:
    """Sleep for about `pause_s`, until all loops wake."""
    await asyncio.sleep(wait_s(pause_s, asyncio.get_running_loop().time()))
