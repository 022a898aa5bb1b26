"""Stacks of captures find their way into snapshots, of the right process only."""

from __future__ import annotations

from tests.unit.server.board import beats

from hangwatch_agent import wire
from hangwatch_server.model import Snapshot
from hangwatch_server.watch.samples import KEEP_S, Samples


def snapshot(now_s: float, pid: int = 1000) -> Snapshot:
    board = beats.board_with("a", now_s=now_s)
    board.apply("a", beats.heartbeat([beats.rank(0, world=1, pid=pid)]), now_s)
    found = board.snapshot(beats.JOB, now_s)
    assert found is not None
    return found


def part(capture: str, age_s: float = 0.0, line: int = 88) -> wire.CapturePart:
    frame = wire.Frame(name="load", file="train.py", line=line)
    thread = wire.Thread(pid=1000, thread_id=1000, name="MainThread", frames=(frame,))
    stacks = (wire.ProcessStacks(pid=1000, role="main", threads=(thread,)),)
    return wire.CapturePart(
        capture=capture, launch=beats.KEY, rank=0, pid=1000, age_s=age_s, stacks=stacks
    )


def test_three_equal_captures_are_counted_with_the_time_between_them() -> None:
    samples = Samples()
    for number, now_s in enumerate((10.0, 15.0, 20.0)):
        samples.add(beats.JOB, part(f"c{number}"), now_s)

    stack = samples.into(snapshot(21.0)).ranks[0].stack

    assert stack is not None
    assert (stack.same_leaf_captures, stack.same_leaf_s, stack.age_s) == (3, 10.0, 1.0)
    assert stack.where == "train.py:88 in load"


def test_spooled_part_that_comes_late_takes_its_place_in_time() -> None:
    samples = Samples()
    samples.add(beats.JOB, part("new", line=90), 20.0)
    samples.add(beats.JOB, part("old", age_s=15.0, line=88), 21.0)

    stack = samples.into(snapshot(21.0)).ranks[0].stack

    assert stack is not None
    assert stack.where == "train.py:90 in load"


def test_stack_of_an_earlier_process_or_of_long_ago_is_not_shown() -> None:
    samples = Samples()
    samples.add(beats.JOB, part("c"), 10.0)

    assert samples.into(snapshot(11.0, pid=77)).ranks[0].stack is None
    assert samples.into(snapshot(11.0 + KEEP_S)).ranks[0].stack is None
