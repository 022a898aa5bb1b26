"""init_process_group and new_group that wait for ranks which do not come; and quiet jobs."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Condition, Kind, Link, RankView


def waiting(rank: int, expected: int, *, detail: str = "env://") -> RankView:
    wait = wire.InitWait(
        what="init_process_group", age_s=15.0, expected=expected, detail=detail, rank=rank
    )
    return make.rank(rank, waits=(wait,), is_initialised=False)


def test_rank_without_any_process_is_named_although_the_job_is_one_larger_than_reported() -> None:
    found = diagnose(make.snapshot([waiting(0, 3), waiting(1, 3)], []))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.INCOMPLETE_RENDEZVOUS, "2")
    assert found.waiting == "0-1"
    assert found.culprits[0].pid is None
    assert any("MASTER_PORT" in hint for hint in found.hints)


def test_rank_known_from_before_the_servers_restart_is_not_said_to_have_no_process() -> None:
    known = RankView(rank=1, node="node-b", link=Link.LATE, age_s=3.0, beat=None)

    found = diagnose(make.snapshot([waiting(0, 2), known], []))[0]

    assert not found.is_hard
    assert found.confidence <= 0.5
    assert found.culprits[0].condition is Condition.UNKNOWN
    assert "has not reported since this server started" in found.summary


def test_rank_whose_process_is_elsewhere_is_named_with_its_place() -> None:
    late = make.rank(3, stack=make.stack(Activity.USER_CODE), is_initialised=False)
    views = [*(waiting(r, 4) for r in range(3)), late]

    found = diagnose(make.snapshot(views, []))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.INCOMPLETE_RENDEZVOUS, "3")
    assert found.culprits[0].condition is Condition.IN_USER_CODE
    assert "never came to init_process_group" in found.summary


def test_missing_processes_come_before_late_ones() -> None:
    late = make.rank(1, is_initialised=False)

    found = diagnose(make.snapshot([waiting(0, 3), late, make.unseen(2)], []))[0]

    assert found.culprit_ranks == "2"


def test_stale_file_rendezvous_blames_the_file_and_no_rank() -> None:
    """Rank 1 believes the group complete and waits in its first all_reduce."""
    views = [
        waiting(0, 2, detail="file:///shared/store"),
        make.rank(1, make.at("world", 0, 1)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.kind is Kind.INCOMPLETE_RENDEZVOUS
    assert found.culprits == ()
    assert found.waiting == "0-1"
    assert "file:///shared/store" in found.hints[0]


def test_all_ranks_waiting_blames_nobody() -> None:
    found = diagnose(make.snapshot([waiting(0, 2), waiting(1, 2)], []))[0]

    assert found.kind is Kind.INCOMPLETE_RENDEZVOUS
    assert found.culprits == ()


def test_rank_that_died_before_it_came_is_hard_evidence() -> None:
    dead = make.rank(1, facts=make.process("gone", exit_code=1), is_initialised=False)

    found = diagnose(make.snapshot([waiting(0, 2), dead], []))[0]

    assert found.culprit_ranks == "1"
    assert found.is_hard


def test_finished_job_has_nothing_to_report() -> None:
    views = [make.rank(r, facts=make.process("gone", exit_code=0)) for r in range(2)]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))

    assert [(item.kind, item.confidence) for item in found] == [(Kind.NONE, 1.0)]
    assert found[0].evidence == ()


def test_job_that_failed_altogether_tells_the_deaths() -> None:
    views = [make.rank(r, facts=make.process("gone", exit_code=1)) for r in range(2)]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.kind is Kind.NONE
    assert "exited with code 1" in found.evidence[0].text


def test_running_job_has_nothing_to_report() -> None:
    views = [make.rank(r, make.at("world", 5, stall_s=3.0)) for r in range(2)]

    assert diagnose(make.snapshot(views, [make.world(0, 1)]))[0].kind is Kind.NONE


def test_nobody_moving_outside_collectives_is_only_information() -> None:
    views = [make.rank(r, make.at("world", 5, stall_s=40.0)) for r in range(2)]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.kind is Kind.NO_PROGRESS
    assert found.culprits == ()
    assert found.confidence < 0.5


def test_ranks_past_destroy_are_not_without_progress() -> None:
    views = [make.rank(r, make.at("world", 5, stall_s=40.0), is_destroyed=True) for r in range(2)]

    assert diagnose(make.snapshot(views, [make.world(0, 1)]))[0].kind is Kind.NONE


def test_new_group_of_some_ranks_accuses_no_outsider_with_confidence() -> None:
    """Under use_local_synchronization only ranks 2-3 take part: 0 and 1 may be right to be away."""
    wait = wire.InitWait(what="new_group", age_s=15.0, expected=2)
    views = [
        *(make.rank(r, make.at("world", 5)) for r in (0, 1, 3)),
        make.rank(2, make.at("world", 5), waits=(wait,)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert found.kind is Kind.INCOMPLETE_RENDEZVOUS
    assert found.confidence < 0.5


def test_new_group_that_one_rank_skips_names_it() -> None:
    wait = wire.InitWait(what="new_group", age_s=15.0, expected=2)
    views = [
        *(make.rank(r, make.at("world", 5), waits=(wait,)) for r in range(3)),
        make.rank(3, make.at("world", 5), stack=make.stack(Activity.USER_CODE)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert (found.kind, found.culprit_ranks, found.op) == (
        Kind.INCOMPLETE_RENDEZVOUS,
        "3",
        "new_group",
    )


def test_ranks_that_are_all_behind_each_other_at_the_store_blame_nobody() -> None:
    """Two connect to the usual port, a third has met its peers at another."""
    at_store = [
        make.rank(rank, waits=(store_wait("tcp://a:29500", "store"),), is_initialised=False)
        for rank in (1, 2)
    ]
    other = make.rank(3, waits=(store_wait("tcp://a:29600", "group"),), is_initialised=False)

    found = diagnose(make.snapshot([make.rank(0), *at_store, other], []))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.INCOMPLETE_RENDEZVOUS, "")
    assert found.waiting == "1-3"


def store_wait(detail: str, stage: str) -> wire.InitWait:
    return wire.InitWait(
        what="init_process_group", age_s=15.0, expected=4, detail=detail, stage=stage
    )
