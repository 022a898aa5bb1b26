"""Keeps Python's cyclic garbage collector from walking through the whole board in the middle.

A diagnosis makes a few hundred thousand short-lived objects without cycles. Left to itself the
collector answers each such burst with a walk over every object of the server, which for large jobs
takes longer than the diagnosis.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
