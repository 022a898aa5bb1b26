"""How captures over time become facts: the run of equal stacks, ages, and what is no stack."""

from __future__ import annotations

from tests.unit.server.stacks import recorded

from hangwatch_agent import wire
from hangwatch_server import stacks


def at(line: int, pid: int = 100) -> wire.ProcessStacks:
    return recorded.stack(("work", "/home/u/train.py", line), pid=pid)


def sample(taken_s: float, *processes: wire.ProcessStacks) -> stacks.Sample:
    return stacks.Sample(recorded.part(*processes), taken_s=taken_s, capture=f"c{taken_s:g}")


def test_equal_stacks_in_a_row_are_counted_with_their_span() -> None:
    facts = stacks.facts(
        [sample(1, at(8)), sample(5, at(9)), sample(10, at(9)), sample(15, at(9))], 16
    )

    assert facts is not None
    assert (facts.same_leaf_captures, facts.same_leaf_s) == (3, 10)
    assert (facts.age_s, facts.capture) == (1, "c15")


def test_caller_that_moves_breaks_the_run() -> None:
    inner = ("read", "/home/u/io.py", 3)
    first = recorded.stack(inner, ("work", "/home/u/train.py", 8))
    second = recorded.stack(inner, ("work", "/home/u/train.py", 9))

    facts = stacks.facts([sample(1, first), sample(5, second)], 5)

    assert facts is not None
    assert facts.same_leaf_captures == 1


def test_worker_that_moves_breaks_the_run_of_its_parent() -> None:
    def worker(line: int) -> wire.ProcessStacks:
        return recorded.stack(("read", "/home/u/data.py", line), pid=101, role="loader")

    facts = stacks.facts([sample(1, at(9), worker(1)), sample(5, at(9), worker(2))], 5)

    assert facts is not None
    assert facts.same_leaf_captures == 1


def test_another_process_of_the_same_rank_starts_a_new_run() -> None:
    facts = stacks.facts([sample(1, at(9)), sample(5, at(9, pid=200))], 5)

    assert facts is not None
    assert (facts.pid, facts.same_leaf_captures) == (200, 1)


def test_capture_without_stacks_says_nothing() -> None:
    empty = wire.ProcessStacks(pid=100, role="main", threads=(), reason="not permitted")

    assert stacks.facts([sample(1, empty)], 2) is None
    assert stacks.facts([], 2) is None


def test_failed_capture_does_not_break_a_run() -> None:
    empty = wire.ProcessStacks(pid=100, role="main", threads=(), reason="timed out")

    facts = stacks.facts([sample(1, at(9)), sample(3, empty), sample(5, at(9))], 5)

    assert facts is not None
    assert facts.same_leaf_captures == 2


def test_thread_that_sleeps_with_the_interpreter_lock_is_named_after_two_looks() -> None:
    main, thread = recorded.process("gil_in_main"), recorded.process("gil_in_thread")

    once = stacks.facts([sample(1, main)], 1)
    found = [stacks.facts([sample(1, held), sample(4, held)], 4) for held in (main, thread)]

    assert once is not None
    assert once.gil_holder == ""
    assert [facts.gil_holder for facts in found if facts is not None] == [
        "its main thread",
        "thread 'native' at prog.py:2 in hold",
    ]


def test_thread_that_runs_with_the_interpreter_lock_just_works() -> None:
    frames = (wire.Frame(name="work", file="/home/u/train.py", line=3),)
    thread = wire.Thread(
        pid=1, thread_id=1, name="MainThread", frames=frames, is_active=True, owns_gil=True
    )
    busy = wire.ProcessStacks(pid=1, role="main", threads=(thread,))

    facts = stacks.facts([sample(1, busy), sample(4, busy)], 4)

    assert facts is not None
    assert facts.gil_holder == ""
