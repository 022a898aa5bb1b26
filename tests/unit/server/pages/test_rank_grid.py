"""The packed grid: fixed places, runs instead of repeats, nothing lost."""

from __future__ import annotations

from tests.web import making

from hangwatch_server.pages import rank_grid


def test_ranks_are_placed_by_node_and_local_rank_whatever_their_order() -> None:
    rows = [making.rank(number, per_node=2) for number in (3, 0, 2, 1)]

    grid = rank_grid.pack(rows)

    assert [(node.name, node.ranks) for node in grid.nodes] == [
        ("node-a", [0, 1]),
        ("node-b", [2, 3]),
    ]


def test_equal_neighbours_travel_as_one_run() -> None:
    rows = [making.rank(number, "waiting") for number in range(512)]

    grid = rank_grid.pack(rows)

    assert grid.doing == [(0, 512)]
    assert grid.texts == ["in dp-1 all_reduce #1042"]
    assert grid.states == "w" * 512


def test_a_state_without_letter_is_shown_as_unknown_not_as_healthy() -> None:
    assert rank_grid.pack([making.rank(0, "something new")]).states == "u"


def test_the_legend_names_only_states_that_occur() -> None:
    rows = [making.rank(0, "waiting"), making.rank(1, "culprit"), making.rank(2, "waiting")]

    assert rank_grid.counts(rows) == [("culprit", 1), ("waiting", 2)]
