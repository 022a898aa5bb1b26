"""A hang keeps its finding while it lasts, and a dead job keeps the one that explains its end."""

from __future__ import annotations

from hangwatch_server.detect import Memory
from hangwatch_server.detect.memory import Stall
from hangwatch_server.model import Finding, Kind
from hangwatch_server.watch import findings

OLD = Finding(kind=Kind.MISSING_RANKS, key="old", stalled_s=100.0)
YOUNG = Finding(kind=Kind.MISSING_RANKS, key="young", stalled_s=3.0)
NONE = Finding(kind=Kind.NONE, key="none")
HUNG = Memory(stall=Stall(origin_s=0.0, is_hung=True))


def test_younger_and_larger_stall_does_not_replace_a_confirmed_hang() -> None:
    assert findings.main((YOUNG, OLD), OLD, HUNG) is OLD
    assert findings.main((YOUNG, OLD), OLD, Memory()) is YOUNG


def test_hang_that_is_found_no_more_makes_way() -> None:
    assert findings.main((YOUNG,), OLD, HUNG) is YOUNG


def test_job_without_a_process_keeps_what_was_found_before() -> None:
    over = Memory(over_since_s=5.0)

    assert findings.last(NONE, OLD, over) is OLD
    assert findings.last(NONE, OLD, Memory()) is NONE
    assert findings.last(NONE, NONE, over) is NONE
