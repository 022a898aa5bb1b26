"""Which agent asks NCCL RAS where that of rank 0 cannot."""

from __future__ import annotations

import dataclasses

from tests.unit.server.diagnose import builders

from hangwatch_agent.wire import Depth
from hangwatch_server.model import Link, RankView, Snapshot
from hangwatch_server.watch import appointments
from hangwatch_server.watch.appointments import Appointments


def job(*ranks: RankView, at_s: float = 100.0) -> Snapshot:
    return dataclasses.replace(builders.snapshot(ranks, []), taken_s=at_s)


def bare(number: int, link: Link = Link.LIVE, state: str = "S") -> RankView:
    facts = builders.process(state)
    return builders.rank(number, depth=Depth.BARE, node=f"n{number}", link=link, facts=facts)


def test_nobody_is_appointed_while_rank_0_is_heard() -> None:
    assert Appointments().due(job(bare(0), bare(1))) is None


def test_lowest_rank_that_is_heard_speaks_for_a_lost_rank_0() -> None:
    lost = bare(0, link=Link.LOST)

    assert Appointments().due(job(lost, bare(1, state="gone"), bare(2), bare(3))) == "n2"
    assert Appointments().due(job(builders.unseen(0), bare(1))) == "n1"


def test_job_whose_ranks_all_have_a_probe_is_not_asked_about() -> None:
    lost = bare(0, link=Link.LOST)

    assert Appointments().due(job(lost, builders.rank(1), builders.rank(2))) is None


def test_appointment_is_renewed_before_it_ends_and_not_at_every_look() -> None:
    kept = Appointments()
    ranks = (bare(0, link=Link.LOST), bare(1))
    assert kept.due(job(*ranks, at_s=100.0)) == "n1"

    assert kept.due(job(*ranks, at_s=101.0)) is None
    assert kept.due(job(*ranks, at_s=100.0 + appointments.RENEW_S)) == "n1"
    assert appointments.RENEW_S < appointments.FOR_S
