"""Keeps Python's cyclic garbage collector from walking through the whole board in the middle.

A diagnosis, or the merging of many stacks, makes a few hundred thousand short-lived objects without
cycles. Left to itself the collector answers each such burst with a walk over every object of the
server, which for large jobs takes longer than the work itself.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (20_000, 20, 50)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without collections inside; as it was before, afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def seldom() -> None:
    """Look for cycles seldom: for a server, once all that stays with it has been loaded.

    Most of its objects are what ranks said a second ago: without cycles, and gone by themselves.
    By Python's own limits a job of 16,384 ranks has everything walked through every three seconds,
    which holds up all of the server for a third of a second each time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
