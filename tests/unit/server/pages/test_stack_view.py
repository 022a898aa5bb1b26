"""What of a tree a page shows at once, and how the rest is asked for."""

from __future__ import annotations

import dataclasses

import pytest
from fastapi import Request
from tests.web import stack_scenes

from hangwatch_server import model
from hangwatch_server.errors import NotFoundError
from hangwatch_server.pages import stack_view
from hangwatch_server.pages.stack_view import Block, Choice, StackView


def request(query: str = "") -> Request:
    return Request({"type": "http", "query_string": query.encode(), "headers": [], "path": "/"})


def view(tree: model.Tree, choice: Choice | None = None, query: str = "") -> StackView:
    return stack_view.of(tree, request(query), choice or Choice(), base="/captures/c")


def blocks(shown: tuple[Block, ...]) -> int:
    return len(shown) + sum(blocks(block.children) for block in shown)


def many(ranks: int = 5000) -> model.Tree:
    return stack_scenes.tree("c", stack_scenes.wide(ranks))


def test_a_wide_tree_is_shown_within_its_budget() -> None:
    shown = view(many())

    assert blocks(shown.segments) <= stack_view.MAX_BLOCKS
    assert (shown.blocks, shown.ranks) == (5001, 5000)
    assert shown.segments[0].more == 5000 - stack_view.MAX_SIBLINGS


def test_every_branch_of_a_wide_tree_can_be_reached() -> None:
    tree = many(600)
    seen: list[str] = []
    skip = 0
    while True:
        choice = Choice(at="0", skip=skip)
        (root,) = view(tree, choice).segments
        seen += [block.segment.ranks for block in root.children]
        skip += len(root.children)
        if not root.more:
            break

    assert seen == [str(rank) for rank in range(600)]


def test_each_page_of_branches_leads_to_the_next_one() -> None:
    tree = many(600)
    node = tree.roots[0]
    while len(node.children) == 1:
        node = node.children[0]
    roots = dataclasses.replace(tree, roots=node.children)

    branch = view(tree, Choice(at="0", skip=48)).segments[0]
    level = view(roots, Choice(skip=48))

    assert (branch.children[0].segment.ranks, branch.more_at) == ("48", 72)
    assert (level.segments[0].segment.ranks, level.more_at) == ("48", 72)


def test_more_branches_come_with_the_frames_that_the_page_shows() -> None:
    assert "framework=true" in view(many(), Choice(framework=True), "framework=true").query


def test_a_rank_asked_for_comes_first() -> None:
    shown = view(many(), Choice(stack_rank=4711))

    assert shown.segments[0].children[0].segment.ranks == "4711"


def test_a_rank_without_a_stack_is_said_to_have_none() -> None:
    assert view(many(), Choice(stack_rank=6000)).note == "No stack of rank 6000 is here."


def test_a_stack_asked_for_by_its_signature_comes_first_and_is_marked() -> None:
    tree = many()
    wanted = next(group for group in tree.classes if group.ranks == "4711")

    first = view(tree, Choice(signature=wanted.signature)).segments[0].children[0]

    assert (first.segment.ranks, first.is_wanted) == ("4711", True)


def test_search_keeps_the_branches_with_a_match_and_their_places() -> None:
    tree = many()
    found = view(tree, Choice(find="TRAIN.py:5711")).segments[0].children

    assert [block.segment.ranks for block in found] == ["4711"]
    (alone,) = view(tree, Choice(at=found[0].segment.at)).segments
    assert alone.segment.ranks == "4711"


def test_search_without_a_match_says_so() -> None:
    assert view(many(), Choice(find="nowhere")).note == "No frame holds “nowhere”."


def test_a_place_that_is_none_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="changed since"):
        view(many(), Choice(at="0.99999"))


def test_the_innermost_frame_stays_though_it_is_the_frameworks() -> None:
    tree = stack_scenes.tree("c", [stack_scenes.part(0, ("main", stack_scenes.WAITING))])

    lines = view(tree).segments[0].lines

    assert [(line.frames[0].name, len(line.frames), line.is_run) for line in lines] == [
        ("<module>", 1, False),
        ("main", 1, False),
        ("train", 1, False),
        ("backward", 3, True),
        ("all_reduce", 1, False),
    ]


def test_links_keep_the_other_choices_and_the_rest_of_the_address() -> None:
    shown = view(many(), Choice(framework=True, find="shard"), "find=shard&framework=1&before=c0")

    assert shown.link(native=True) == "?before=c0&native=true&framework=true&find=shard"
    assert shown.link(find="") == "?before=c0&framework=true"


def test_deep_recursion_is_folded_in_the_middle() -> None:
    tree = stack_scenes.tree("c", stack_scenes.odd())

    deep = next(
        child for child in view(tree).segments[0].children if len(child.segment.frames) > 100
    )

    assert len(deep.lines) == stack_view.KEPT_OUTER + 1 + stack_view.KEPT_INNER
    assert sum(len(line.frames) for line in deep.lines) == len(deep.segment.frames)
