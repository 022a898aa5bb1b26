"""Folding of the merged tree into blocks, and the stack on a culprit's card."""

from __future__ import annotations

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
