"""The packed grid: fixed places, runs instead of repeats, nothing lost."""

from __future__ import annotations

import dataclasses

from tests.web import making

from hangwatch_server import model
from hangwatch_server.pages import colouring, job_data, rank_grid, runs


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
    assert runs.in_step([5, 6, 7, None, None, 9, 8]) == [(5, 3), (None, 2), (9, 1), (8, 1)]


def test_a_stream_sends_places_once_then_only_looks_that_changed() -> None:
    changes = job_data.Changes()
    before = [making.rank(0), making.rank(1)]
    after = [making.rank(0), making.rank(1, "waiting")]

    first = changes.of(rank_grid.pack(before), (), 10.0)
    same = changes.of(rank_grid.pack(before), (), 11.0)
    later = changes.of(rank_grid.pack(after), (), 12.0)

    assert "places" in first
    assert same == ""
    assert "places" not in later
    assert '"states":[["h",1],["w",1]]' in later


def test_places_that_the_page_holds_are_not_sent_again() -> None:
    grid = rank_grid.pack([making.rank(0)])

    sent = job_data.Changes(job_data.digest(grid)).of(grid, (), 10.0)

    assert "places" not in sent
    assert "looks" in sent


def test_ranks_that_moved_are_sent_with_their_places() -> None:
    changes = job_data.Changes()
    changes.of(rank_grid.pack([making.rank(0)]), (), 10.0)

    moved = changes.of(rank_grid.pack([making.rank(0), making.rank(1)]), (), 11.0)

    assert "places" in moved
    assert "looks" in moved


def test_only_new_points_of_the_line_follow() -> None:
    changes = job_data.Changes()
    grid = rank_grid.pack([making.rank(0)])
    point = model.TimelinePoint(ago_s=0.5, calls_per_s=12.3456, state=model.State.HEALTHY)
    older = dataclasses.replace(point, ago_s=1.5)
    newer = dataclasses.replace(point, calls_per_s=7.0)

    changes.of(grid, [point], 100.0)
    sent = changes.of(grid, [older, newer], 101.0)

    assert '"ago_s":[0.5],"calls_per_s":[7.0]' in sent
    assert changes.of(grid, [older, newer], 101.0) == ""


def test_an_age_is_a_step_that_seldom_changes() -> None:
    rows = [making.rank(n, age_s=age) for n, age in enumerate((0.2, 2.9, 12.0, 19.0, None))]

    assert rank_grid.pack(rows).looks.ages == [(0, 2), (3, 2), (colouring.NEVER, 1)]


def test_ranks_outside_the_filter_are_marked() -> None:
    rows = [making.rank(n) for n in range(4)]

    assert rank_grid.pack(rows, chosen=frozenset({1})).looks.chosen == [(0, 1), (1, 1), (0, 2)]


def test_classes_are_in_the_order_of_places_not_of_rows() -> None:
    rows = [making.rank(1, per_node=1), making.rank(0, per_node=1, process_state="D")]
    colours = colouring.of(colouring.By.CONDITION, rows, {})

    packed = rank_grid.pack(rows, colours).looks.colours

    assert packed is not None
    assert [name for name, *_ in packed.classes] == ["uninterruptible", "nothing odd"]
    assert packed.of == [(0, 1), (1, 1)]


def test_many_different_doings_are_told_up_to_a_bound() -> None:
    rows = [making.rank(n, where=f"train.py:{n} in step") for n in range(rank_grid.MOST_TEXTS + 5)]

    looks = rank_grid.pack(rows).looks

    assert len(looks.texts) == rank_grid.MOST_TEXTS + 1
    assert looks.texts[-1] == ""


def test_what_a_rank_does_cannot_turn_the_words_round_it() -> None:
    grid = rank_grid.pack([making.rank(0, node="node\u202ea", where="eno\u202e.py:3 in f")])

    assert grid.looks.texts == ["eno.py:3 in f"]
    assert grid.places is not None
    assert grid.places.nodes[0].name == "nodea"
