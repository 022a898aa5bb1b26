"""Folding of the merged tree into blocks, and the stack on a culprit's card."""

from __future__ import annotations

from dataclasses import replace

from tests.web import making

from hangwatch_server.pages import stack_segments


def test_frames_that_the_same_ranks_share_are_one_block() -> None:
    (shared,) = stack_segments.of_tree(making.tree("c", "5", "0-4,6-7"))

    assert [frame.name for frame in shared.frames] == ["<module>", "main", "train"]
    assert shared.count == 8


def test_the_smallest_set_of_ranks_comes_first() -> None:
    (shared,) = stack_segments.of_tree(making.tree("c", "5", "0-4,6-7"))

    assert [child.ranks for child in shared.children] == ["5", "0-4,6-7"]


def test_a_culprits_stack_tells_its_own_code_from_the_frameworks() -> None:
    lines, group = stack_segments.stack_of(making.tree("c", "5", "0-4"), 5)

    assert group is not None
    assert [line.name for line in lines if not line.is_framework] == [
        "__getitem__",
        "train",
        "main",
        "<module>",
    ]


def test_a_rank_without_stack_has_none() -> None:
    assert stack_segments.stack_of(making.tree("c", "5", "0-4"), 9) == ((), None)


def test_the_culprits_block_comes_before_a_smaller_one() -> None:
    (shared,) = stack_segments.of_tree(making.tree("c", "0-2", "5"), culprits="1")

    assert [child.ranks for child in shared.children] == ["0-2", "5"]


def test_the_stack_of_a_loader_worker_is_told_innermost_first() -> None:
    tree = making.tree("c", "5", "0-4")
    root = replace(tree.roots[0], name="loader workers", file="", children=tree.roots)

    lines = stack_segments.worker_of(replace(tree, roots=(*tree.roots, root)), 5)

    assert [line.name for line in lines][:2] == ["read", "__getitem__"]
    assert lines[-1].name == "<module>"


def test_a_rank_without_loader_workers_has_no_stack_of_one() -> None:
    assert stack_segments.worker_of(making.tree("c", "5", "0-4"), 5) == ()
