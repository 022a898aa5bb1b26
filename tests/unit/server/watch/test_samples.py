"""Stacks of captures find their way into snapshots, of the right process only."""

from __future__ import annotations

import dataclasses

import msgspec
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


def part(
    capture: str, age_s: float = 0.0, line: int = 88, cpu_s: float | None = None
) -> wire.CapturePart:
    """`cpu_s`: CPU time of the main thread at that moment, where the capture says it."""
    frame = wire.Frame(name="load", file="train.py", line=line)
    thread = wire.Thread(pid=1000, thread_id=1000, name="MainThread", frames=(frame,))
    stacks = (wire.ProcessStacks(pid=1000, role="main", threads=(thread,)),)
    process = None if cpu_s is None else wire.ProcessFacts(state="S", main_cpu_s=cpu_s)
    return wire.CapturePart(
        capture=capture,
        launch=beats.KEY,
        rank=0,
        pid=1000,
        age_s=age_s,
        stacks=stacks,
        process=process,
    )


def test_stall_that_outlasts_the_kept_captures_is_known_by_its_first() -> None:
    samples = Samples()
    samples.add(beats.JOB, part("moving", line=1), 0.0)
    for number in range(30):
        samples.add(beats.JOB, part(f"c{number}"), 10.0 + 3.0 * number)

    stack = samples.into(snapshot(98.0)).ranks[0].stack

    assert stack is not None
    assert (stack.same_leaf_s, stack.same_leaf_captures) == (87.0, 8)


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


def snapshot_later(now_s: float, cpu_s: float) -> Snapshot:
    """Rank 0 as it is at `now_s`, its main thread having used `cpu_s` of CPU time so far."""
    found = snapshot(now_s)
    view = found.ranks[0]
    assert view.beat is not None
    facts = msgspec.structs.replace(view.beat.process, main_cpu_s=cpu_s)
    still = tuple(msgspec.structs.replace(g, stall_s=now_s) for g in view.beat.groups)
    beat = msgspec.structs.replace(view.beat, process=facts, groups=still)
    return dataclasses.replace(found, ranks={0: dataclasses.replace(view, beat=beat)})


def test_stack_of_a_rank_that_stands_still_is_shown_for_as_long_as_it_does() -> None:
    samples = Samples()
    samples.add(beats.JOB, part("c", cpu_s=7.0), 10.0)

    stack = samples.into(snapshot_later(10.0 + 30 * KEEP_S, cpu_s=7.1)).ranks[0].stack

    assert stack is not None
    assert stack.age_s == 30 * KEEP_S


def test_old_stack_of_a_rank_whose_main_thread_went_on_is_not_shown() -> None:
    samples = Samples()
    samples.add(beats.JOB, part("c", cpu_s=7.0), 10.0)

    assert samples.into(snapshot_later(11.0 + KEEP_S, cpu_s=9.0)).ranks[0].stack is None
