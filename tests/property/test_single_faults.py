"""Diagnosis names the true culprits of generated jobs, whatever the fault, mesh and telemetry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synthetic import catalogue, jobs, judge

from hangwatch_server.diagnose import diagnose

FEW = settings(max_examples=5, deadline=None, derandomize=True)
SEEDS = st.integers(0, 10_000)


@pytest.mark.parametrize(
    "fault",
    sorted(catalogue.single_faults.ALONE),
)
@FEW
@given(SEEDS)
def test_rank_that_stops_is_named_first_with_what_it_does(fault: str, seed: int) -> None:
    job = catalogue.single(fault, seed)

    mark = judge.of_first(job, diagnose(jobs.snapshot(job)))

    assert mark.is_right, mark.said
    assert mark.is_condition_right
