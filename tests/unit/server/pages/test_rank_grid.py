"""The packed grid: fixed places, runs instead of repeats, nothing lost."""

from __future__ import annotations

from tests.web import making

from hangwatch_server import model
from hangwatch_server.pages import rank_grid


def test_ranks_are_placed_by_node_and_local_rank_whatever_their_order() -> None:
    rows = [making.rank(number, per_node=2) for number in (3, 0, 2, 1)]

    grid = rank_grid.pack(rows)

    assert grid.places is not None
    assert [(node.name, node.ranks) for node in grid.places.nodes] == [
        ("node-a", [(0, 2)]),
        ("node-b", [(2, 2)]),
    ]


def test_equal_neighbours_travel_as_one_run() -> None:
    rows = [making.rank(number, "waiting") for number in range(512)]

    grid = rank_grid.pack(rows)

    assert grid.looks.doing == [(0, 512)]
    assert grid.looks.texts == ["in dp-1 all_reduce #1042"]
    assert grid.looks.states == [("w", 512)]


def test_a_state_without_letter_is_shown_as_unknown_not_as_healthy() -> None:
    assert rank_grid.pack([making.rank(0, "something new")]).looks.states == [("u", 1)]


def test_a_rank_not_heard_lately_has_a_capital_letter() -> None:
    rows = [making.rank(0), making.rank(1, link=model.Link.LATE)]

    assert rank_grid.pack(rows).looks.states == [("h", 1), ("H", 1)]


def test_numbers_in_step_are_one_run_and_gaps_are_kept() -> None:
    assert rank_grid.in_step([5, 6, 7, None, None, 9, 8]) == [(5, 3), (None, 2), (9, 1), (8, 1)]


def test_a_stream_sends_places_once_then_only_looks_that_changed() -> None:
    changes = rank_grid.Changes()
    before = [making.rank(0), making.rank(1)]
    after = [making.rank(0), making.rank(1, "waiting")]

    first = changes.of(rank_grid.pack(before))
    same = changes.of(rank_grid.pack(before))
    later = changes.of(rank_grid.pack(after))

    assert "places" in first
    assert same == ""
    assert "places" not in later
    assert '"states":[["h",1],["w",1]]' in later


def test_ranks_that_moved_are_sent_with_their_places() -> None:
    changes = rank_grid.Changes()
    changes.of(rank_grid.pack([making.rank(0)]))

    assert "places" in changes.of(rank_grid.pack([making.rank(0), making.rank(1)]))


def test_the_legend_names_only_states_that_occur() -> None:
    rows = [making.rank(0, "waiting"), making.rank(1, "culprit"), making.rank(2, "waiting")]

    assert rank_grid.counts(rows) == [("culprit", 1), ("waiting", 2)]
