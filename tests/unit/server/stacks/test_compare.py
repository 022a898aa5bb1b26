"""Two captures side by side: who moved, and from where to where."""

from __future__ import annotations

from tests.web import making, stack_scenes

from hangwatch_server import stacks

EARLIER = making.capture("c1", "job", "0-63")
LATER = making.capture("c2", "job", "0-63")


def test_ranks_that_moved_come_first_with_both_places() -> None:
    found = stacks.compare(
        EARLIER,
        stacks.outlined(stack_scenes.before()),
        LATER,
        stacks.outlined(stack_scenes.after()),
    )

    assert (found.moved, found.frozen) == ("9-10", "0-8,11-63")
    assert [(move.ranks, move.is_frozen) for move in found.moves] == [
        ("9-10", False),
        ("5", True),
        ("0-4,6-8,11-63", True),
    ]
    assert found.moves[0].before == "train.py:147 in train, inside all_reduce"
    assert found.moves[0].after == "train.py:63 in write"


def test_ranks_of_one_capture_only_are_neither_frozen_nor_moving() -> None:
    now = [part for part in stack_scenes.after() if part.rank < 60]
    then = [part for part in stack_scenes.before() if part.rank > 1]

    found = stacks.compare(EARLIER, stacks.outlined(then), LATER, stacks.outlined(now))

    assert (found.only_before, found.only_after) == ("60-63", "0-1")
    assert found.frozen == "2-8,11-59"


def test_a_tree_says_where_moving_ranks_were() -> None:
    roots, _ = stacks.merge(stack_scenes.after(), stack_scenes.before())

    (main,) = next(root for root in roots if root.file).children
    moving = next(node for node in main.children if node.ranks == "9-10")
    leaf = moving.children[0].children[0]
    assert (moving.moved, main.moved, leaf.moved) == ("9-10", "9-10", "9-10")
    assert [(was.ranks, was.where, was.leaf) for was in leaf.earlier] == [
        ("9-10", "train.py:147 in train", "all_reduce")
    ]
    assert moving.earlier == ()  # said where the stack ends, once
