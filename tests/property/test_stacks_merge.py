"""Merging loses no rank, whatever the stacks and their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import wire
from hangwatch_server import ranges, stacks
from hangwatch_server.model import TreeNode

FRAMES = st.builds(
    wire.Frame,
    name=st.sampled_from(["main", "step", "load", "all_reduce"]),
    file=st.sampled_from(["/home/u/train.py", "/usr/lib/python3.11/queue.py"]),
    line=st.integers(1, 3),
)
JOBS = st.dictionaries(
    st.integers(0, 200), st.lists(FRAMES, min_size=1, max_size=4).map(tuple), max_size=20
)


def parts(job: dict[int, tuple[wire.Frame, ...]]) -> list[stacks.RankStacks]:
    made = []
    for rank, frames in job.items():
        thread = wire.Thread(pid=1, thread_id=1, name="MainThread", frames=frames)
        process = wire.ProcessStacks(pid=1, role="main", threads=(thread,))
        made.append(stacks.RankStacks(rank, (process,)))
    return made


def ranks_of(nodes: tuple[TreeNode, ...]) -> list[int]:
    return sorted(rank for node in nodes for rank in ranges.parse(node.ranks))


@given(JOBS)
def test_every_rank_is_in_one_root_and_one_class(job: dict[int, tuple[wire.Frame, ...]]) -> None:
    roots, classes = stacks.merge(parts(job))

    assert ranks_of(roots) == sorted(job)
    assert sorted(r for item in classes for r in ranges.parse(item.ranks)) == sorted(job)


@given(JOBS)
def test_children_never_hold_ranks_that_their_parent_lacks(
    job: dict[int, tuple[wire.Frame, ...]],
) -> None:
    def check(node: TreeNode) -> None:
        assert set(ranks_of(node.children)) <= set(ranges.parse(node.ranks))
        for child in node.children:
            check(child)

    for root in stacks.merge(parts(job))[0]:
        check(root)


@given(JOBS)
def test_order_of_the_parts_does_not_matter(job: dict[int, tuple[wire.Frame, ...]]) -> None:
    forward = stacks.merge(parts(job))
    backward = stacks.merge(list(reversed(parts(job))))

    assert forward == backward


@given(JOBS)
def test_stack_compared_with_itself_is_frozen(job: dict[int, tuple[wire.Frame, ...]]) -> None:
    _, classes = stacks.merge(parts(job), parts(job))

    assert all(item.is_frozen for item in classes)
