"""How far each rank has come with a rendezvous, and who is behind whom."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Kind, RankView


def starting(rank: int, stage: str, *, expected: int = 4) -> RankView:
    wait = wire.InitWait(
        what="init_process_group", age_s=15.0, expected=expected, rank=rank, stage=stage
    )
    return make.rank(rank, waits=(wait,), is_initialised=False)


def creating(rank: int, begun: int, *, is_inside: bool = True) -> RankView:
    wait = wire.InitWait(what="new_group", age_s=15.0, expected=4)
    waits = (wait,) if is_inside else ()
    return make.rank(rank, make.at("world", 5), waits=waits, groups_begun=begun)


def test_rank_that_cannot_reach_the_store_is_named_when_the_others_could() -> None:
    views = [starting(r, "store" if r == 2 else "group") for r in range(4)]

    found = diagnose(make.snapshot(views, []))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.INCOMPLETE_RENDEZVOUS, "2")
    assert found.waiting == "0-1,3"


def test_host_of_the_store_waits_there_for_the_others_and_is_not_named() -> None:
    views = [starting(r, "store" if r == 0 else "group") for r in range(3)]

    found = diagnose(make.snapshot([*views, make.rank(3, is_initialised=False)], []))[0]

    assert found.culprit_ranks == "3"


def test_nobody_is_named_while_all_connect_to_the_store() -> None:
    found = diagnose(make.snapshot([starting(r, "store") for r in range(4)], []))[0]

    assert (found.kind, found.culprits) == (Kind.INCOMPLETE_RENDEZVOUS, ())


def test_rank_that_has_begun_fewer_groups_is_the_one_that_is_waited_for() -> None:
    """Ranks 0-2 make their third group; rank 3 has made two and trains."""
    views = [creating(r, 3) for r in range(3)]

    found = diagnose(
        make.snapshot([*views, creating(3, 2, is_inside=False)], [make.world(*range(4))])
    )

    assert [item.culprit_ranks for item in found] == ["3"]
    assert found[0].waiting == "0-2"


def test_rank_in_an_earlier_creation_waits_for_the_rank_that_never_came_to_that_one() -> None:
    """Rank 3 skipped the second group; rank 0 left it unharmed and waits in the third."""
    views = [creating(0, 3), creating(1, 2), creating(2, 2), creating(3, 1, is_inside=False)]

    found = diagnose(make.snapshot(views, [make.world(*range(4))]))

    assert [item.culprit_ranks for item in found] == ["3"]
    assert found[0].waiting == "0-2"


def test_rank_that_has_made_the_group_and_gone_on_is_not_accused() -> None:
    views = [creating(0, 2), creating(1, 2), creating(2, 2), creating(3, 3, is_inside=False)]

    found = diagnose(make.snapshot(views, [make.world(*range(4))]))[0]

    assert found.culprits == ()


@pytest.mark.parametrize("expected", [2**63 - 1, -5])
def test_impossible_world_size_is_counted_through_in_bounded_time(expected: int) -> None:
    found = diagnose(make.snapshot([starting(0, "group", expected=expected)], []))[0]

    assert found.kind is Kind.INCOMPLETE_RENDEZVOUS


@pytest.mark.parametrize("done", [0, 5])
def test_rank_that_came_back_as_a_new_process_is_the_one_that_the_others_wait_for(
    done: int,
) -> None:
    """Its peers still wait in groups that the old process was in: nobody comes to meet the new."""
    views = [make.rank(r, make.at("world", done, done + 1)) for r in range(3)]

    found = diagnose(make.snapshot([*views, starting(3, "store")], [make.world(*range(4))]))

    assert [item.culprit_ranks for item in found] == ["3"]
    assert found[0].waiting == "0-2"


def test_rank_that_waits_at_another_port_is_named() -> None:
    def at_port(rank: int, port: int) -> RankView:
        wait = wire.InitWait(
            what="init_process_group",
            age_s=15.0,
            expected=4,
            rank=rank,
            stage="store",
            detail=f"env://host-{rank}:{port}",
        )
        return make.rank(rank, waits=(wait,), is_initialised=False)

    views = [at_port(r, 29501 if r == 3 else 29500) for r in range(4)]

    found = diagnose(make.snapshot(views, []))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.INCOMPLETE_RENDEZVOUS, "3")
    assert "29501 (rank 3)" in found.evidence[0].text
