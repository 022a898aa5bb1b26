"""The swimlane of last calls: what each cell says of a class of ranks."""

from __future__ import annotations

from tests.web import moments

from hangwatch_server import model
from hangwatch_server.pages import lanes


def _kinds(row: lanes.Row) -> list[str]:
    return [cell.kind for cell in row.cells]


def test_the_call_that_a_rank_never_entered_is_missing() -> None:
    (drawn,) = lanes.of_lanes(
        [moments.lane("dp-1", "5", 41), moments.lane("dp-1", "1,3", 41, inside=1)], [1, 2]
    )

    assert drawn.numbers == tuple(range(23, 43))
    assert _kinds(drawn.rows[0]) == ["finished"] * 19 + ["missing"]
    assert _kinds(drawn.rows[1]) == ["finished"] * 19 + ["inside"]
    assert drawn.rows[0].cells[-1].text == "#42 all_reduce: never entered"


def test_calls_beyond_the_first_missing_one_are_not_reached() -> None:
    (drawn,) = lanes.of_lanes(
        [moments.lane("dp-1", "5", 40), moments.lane("dp-1", "1", 41, inside=2)], [1, 1]
    )

    assert _kinds(drawn.rows[0])[-3:] == ["missing", "later", "later"]


def test_a_rank_in_another_call_than_the_rest_stands_out() -> None:
    usual = moments.lane("world", "0,2-7", 28, inside=1)
    barrier = model.LaneCall(seq=29, op="barrier", shape="", is_finished=False)
    odd = model.Lane(
        gid=usual.gid, group="world", ranks="1", calls=(*usual.calls[:-1], barrier), entered=29
    )

    (drawn,) = lanes.of_lanes([odd, usual], [1, 7])

    assert [row.cells[-1].kind for row in drawn.rows] == ["odd", "inside"]
    assert drawn.rows[0].cells[-1].code == "BAR"


def test_on_a_tie_neither_call_is_taken_for_the_right_one() -> None:
    drawn = lanes.of_lanes(moments.of_mismatch().lanes, [1, 1])

    assert [row.cells[-1].kind for row in drawn[0].rows] == ["odd", "odd"]


def test_what_is_not_recorded_is_never_shown_as_finished() -> None:
    silent = model.Lane(gid="gid-dp-1", group="dp-1", ranks="5", calls=(), entered=None)
    counted = model.Lane(gid="gid-dp-1", group="dp-1", ranks="6", calls=(), entered=40)

    (drawn,) = lanes.of_lanes([silent, counted, moments.lane("dp-1", "1", 41, inside=1)], [1, 1, 1])

    assert set(_kinds(drawn.rows[0])) == {"unknown"}
    assert drawn.rows[0].note == "nothing is known of its calls here"
    assert _kinds(drawn.rows[1])[-3:] == ["unknown", "missing", "later"]
    assert drawn.rows[1].note == "its calls are not recorded; it has entered #40"


def test_groups_without_any_number_are_left_out() -> None:
    silent = model.Lane(gid="g", group="dp-1", ranks="5", calls=(), entered=None)

    assert lanes.of_lanes([silent], [1]) == ()


def test_unknown_calls_get_a_code_of_their_own() -> None:
    assert (lanes.code("all_reduce"), lanes.code("_my_new_call"), lanes.code("zap")) == (
        "AR",
        "MNC",
        "ZA",
    )
