from __future__ import annotations

from hangwatch_agent import sources, wire

OWN = "/home/ada/train.py"
TORCH = "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"


def stack(*frames: tuple[str, int]) -> wire.ProcessStacks:
    made = tuple(wire.Frame(name="f", file=file, line=line) for file, line in frames)
    thread = wire.Thread(pid=1, thread_id=1, name="", frames=made)
    return wire.ProcessStacks(pid=1, role="main", threads=(thread,))


def test_only_the_users_own_lines_are_asked_for() -> None:
    found = sources.places_of(
        [stack((TORCH, 7), (OWN, 88), ("<string>", 1), ("train.py", 3), (OWN, 0), (OWN, 12))]
    )

    assert found == [(OWN, 88), (OWN, 12)]


def test_line_that_several_stacks_stand_at_is_asked_for_once() -> None:
    assert sources.places_of([stack((OWN, 88)), stack((OWN, 88))]) == [(OWN, 88)]


def test_deep_recursion_and_many_processes_stay_within_the_bound() -> None:
    deep = [stack(*((f"/home/ada/{n}.py", line) for line in range(1, 200))) for n in range(40)]

    found = sources.places_of(deep)

    assert len(found) == wire.MAX_SOURCES
    assert found[: sources.PER_STACK] == [("/home/ada/0.py", line) for line in range(1, 9)]


def test_process_without_threads_has_no_lines() -> None:
    assert sources.places_of([wire.ProcessStacks(pid=1, role="main", threads=())]) == []
