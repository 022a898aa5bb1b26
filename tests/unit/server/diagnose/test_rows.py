"""Rows of the rank grid and the group table."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_server.diagnose import diagnose, group_row, group_rows, rank_rows
from hangwatch_server.model import Link

SNAPSHOT = make.snapshot(
    [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.at("world", 5)),
        make.rank(2, make.at("world", 5, 6), link=Link.LOST, age_s=30.0),
        make.unseen(3),
    ],
    [make.world(0, 1, 2)],
)


def test_each_rank_has_its_own_state() -> None:
    rows = rank_rows(SNAPSHOT, diagnose(SNAPSHOT)[0])

    assert [row.state for row in rows] == ["waiting", "culprit", "silent", "unknown"]
    assert rows[0].waits_in == "the default group all_reduce #6"
    assert rows[3].pid is None


def test_group_shows_its_front_and_who_is_behind() -> None:
    row = group_rows(SNAPSHOT)[0]

    assert (row.at, row.op, row.waiting) == (6, "all_reduce", "0,2")
    assert row.behind.startswith("1")
    assert row.members == ()


def test_single_group_lists_its_members() -> None:
    row = group_row(SNAPSHOT, "world")

    assert [(m.rank, m.seq, m.is_waiting) for m in row.members] == [
        (0, 6, True),
        (1, 5, False),
        (2, 6, True),
    ]
