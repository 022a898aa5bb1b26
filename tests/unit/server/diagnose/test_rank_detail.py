"""Everything known of one rank: facts beside each other, and where it stands in its groups."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose, rank_detail
from hangwatch_server.model import RankDetail

WORKER = wire.ChildFacts(pid=831, name="python", role="loader", state="D", wchan="nfs4_wait")
SNAPSHOT = make.snapshot(
    [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.at("world", 4), facts=make.process(threads=9, children=[WORKER])),
        make.unseen(2),
    ],
    [make.world(0, 1, 2)],
)


def _detail(rank: int) -> RankDetail:
    return rank_detail(SNAPSHOT, diagnose(SNAPSHOT)[0], rank)


def test_a_rank_that_lags_says_by_how_many_calls() -> None:
    (group,) = _detail(1).groups

    assert (group.seq, group.at, group.behind, group.op) == (4, 6, 2, "")


def test_a_rank_at_the_front_is_behind_nobody_and_says_what_it_is_in() -> None:
    (group,) = _detail(0).groups

    assert (group.seq, group.behind, group.op) == (6, 0, "all_reduce")


def test_last_calls_come_newest_first_with_sizes_and_whether_they_finished() -> None:
    calls = _detail(0).calls

    assert [(call.seq, call.is_finished) for call in calls] == [
        (6, False),
        (5, True),
        (4, True),
        (3, True),
    ]
    assert calls[0].sizes == "[4] Float"


def test_the_process_comes_with_its_children() -> None:
    process = _detail(1).process

    assert process is not None
    assert process.threads == 9
    assert [(child.role, child.wchan) for child in process.children] == [("loader", "nfs4_wait")]


def test_a_rank_that_was_never_reported_has_a_row_and_nothing_else() -> None:
    detail = _detail(2)

    assert detail.row.state in ("unknown", "culprit")
    assert detail.process is None
    assert detail.groups == detail.calls == ()


def test_a_rank_that_the_job_does_not_have_is_refused() -> None:
    with pytest.raises(KeyError):
        _detail(7)
