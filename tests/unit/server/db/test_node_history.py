"""How incidents add up by node: counts, and the GPU hours of the ranks that waited."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hangwatch_server.db import node_history
from hangwatch_server.db.node_history import Stall

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def _stall(
    *nodes: str, job: str = "j1", waiting: str = "0-4,6-7", hours: float = 2.0, day: int = 0
) -> Stall:
    opened_at = NOON - timedelta(days=day)
    length_s = hours * 3600
    return Stall(job=job, nodes=nodes, waiting=waiting, length_s=length_s, opened_at=opened_at)


def test_hours_lost_are_waiting_ranks_times_length() -> None:
    found = node_history.tally([_stall("node-b")])

    assert found["node-b"].incidents == 1
    assert found["node-b"].gpu_hours_lost == pytest.approx(14.0)


def test_nodes_that_share_the_blame_share_the_hours() -> None:
    found = node_history.tally([_stall("node-a", "node-b")])

    assert found["node-a"].gpu_hours_lost == pytest.approx(7.0)
    assert found["node-b"].gpu_hours_lost == pytest.approx(7.0)


def test_several_incidents_add_up_and_the_newest_is_remembered() -> None:
    found = node_history.tally([_stall("node-b", day=3), _stall("node-b", day=1)])

    assert found["node-b"].incidents == 2
    assert found["node-b"].gpu_hours_lost == pytest.approx(28.0)
    assert found["node-b"].last_incident_at == NOON - timedelta(days=1)


def test_a_job_that_hangs_again_counts_once_among_the_jobs() -> None:
    found = node_history.tally([_stall("n", job=job) for job in ("j1", "j1", "j2")])

    assert (found["n"].incidents, found["n"].jobs) == (3, 2)


def test_ranks_that_nobody_waited_for_cost_nothing() -> None:
    assert node_history.tally([_stall("node-b", waiting="")])["node-b"].gpu_hours_lost == 0


def test_a_text_that_is_no_range_costs_nothing_and_breaks_nothing() -> None:
    assert node_history.tally([_stall("node-b", waiting="all")])["node-b"].gpu_hours_lost == 0
