"""Diagnosis of generated jobs whose truth is known: every fault, damage and forgery.

The jobs come from tests/synthetic; hypothesis draws their seeds. The same over thousands of jobs is
bench/generated.py; what once failed there is in recorded.py.
"""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.property import recorded
from tests.synthetic import catalogue, damage, forgery, jobs, judge, large
from tests.synthetic.jobs import Job

from hangwatch_server import ranges
from hangwatch_server.diagnose import DEFAULT, diagnose, path, survey
from hangwatch_server.diagnose.calls import mismatch
from hangwatch_server.diagnose.pending import collectives, plain
from hangwatch_server.model import Link, Snapshot

SEEDS = st.integers(0, 100_000)
# A smaller seed is no simpler job: nothing is gained by shrinking.
ONCE = settings(deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
FEW = settings(ONCE, max_examples=1)
SOME = settings(ONCE, max_examples=4)
STOPPED = st.sampled_from(sorted(catalogue.single_faults.ALONE))


@pytest.mark.parametrize("fault", sorted(catalogue.SINGLE))
@FEW
@given(SEEDS)
def test_single_fault_is_named_first_with_what_its_rank_does(fault: str, seed: int) -> None:
    job = catalogue.single(fault, seed)

    mark = judge.of_first(job, diagnose(jobs.snapshot(job)))

    assert mark.is_right, mark.said
    assert mark.is_condition_right


@SOME
@given(SEEDS)
def test_two_faults_are_both_named_and_nobody_else(seed: int) -> None:
    job = catalogue.double(seed)

    mark = judge.of_all(job, diagnose(jobs.snapshot(job)))

    assert mark.is_right, mark.said


@pytest.mark.parametrize("sort", sorted(catalogue.HEALTHY))
@FEW
@given(SEEDS)
def test_healthy_job_accuses_nobody(sort: str, seed: int) -> None:
    job = catalogue.healthy_job(sort, seed)
    earlier, later = jobs.pair(job)

    mark = judge.of_healthy(job, diagnose(earlier), diagnose(later))

    assert mark.is_right, mark.said


@pytest.mark.parametrize("sort", sorted(damage.DAMAGES))
@SOME
@given(SEEDS)
def test_damaged_telemetry_gives_no_sure_and_wrong_name(sort: str, seed: int) -> None:
    job = catalogue.nth_single(seed)
    damaged = damage.DAMAGES[sort](job, 0.1, random.Random(seed))

    for snapshot in (damaged.earlier, damaged.later):
        assert not judge.is_harmful(job, diagnose(snapshot))


@pytest.mark.parametrize("sort", sorted(forgery.SORTS))
@FEW
@given(SEEDS)
def test_forged_telemetry_gives_no_sure_and_wrong_name(sort: str, seed: int) -> None:
    job = catalogue.nth_single(seed)
    forged = forgery.forged(job, sort, random.Random(seed))

    assert not judge.is_harmful(job, diagnose(forged.later))


@SOME
@given(SEEDS, st.randoms(use_true_random=False))
def test_order_of_ranks_and_groups_never_matters(seed: int, shuffler: random.Random) -> None:
    snapshot = jobs.snapshot(catalogue.nth_single(seed))

    assert diagnose(_shuffled(snapshot, shuffler)) == diagnose(snapshot)


@SOME
@given(STOPPED, SEEDS)
def test_silent_culprit_is_never_replaced_by_a_sure_other(fault: str, seed: int) -> None:
    job = catalogue.single(fault, seed)
    (culprit,) = job.truth.culprits
    snapshot = jobs.snapshot(job)
    view = replace(snapshot.ranks[culprit], link=Link.LOST, age_s=40.0)

    found = diagnose(replace(snapshot, ranks={**snapshot.ranks, culprit: view}))

    assert not judge.is_harmful(job, found)


@SOME
@given(STOPPED, SEEDS)
def test_path_of_every_waiting_rank_ends_at_the_culprit(fault: str, seed: int) -> None:
    job = catalogue.single(fault, seed)
    (culprit,) = job.truth.culprits
    snapshot = jobs.snapshot(job)
    waiting = ranges.parse(diagnose(snapshot)[0].waiting)

    for rank in [*waiting[:3], *waiting[-3:]]:
        steps = path(snapshot, rank)
        assert steps[0].rank == rank
        assert steps[-1].rank == culprit
    assert path(snapshot, culprit) == ()


@pytest.mark.parametrize("case", recorded.CASES, ids=lambda case: case.name)
def test_recorded_case_stays_right(case: recorded.Case) -> None:
    job = case.job()
    snapshot = case.snapshot(job)

    found = diagnose(snapshot)

    assert not judge.is_harmful(job, found)
    if case.must_be_right:
        assert judge.of_first(job, found).is_right


@pytest.mark.parametrize("seed", recorded.HIDDEN)
def test_second_fault_is_named_though_it_came_to_the_oldest_call(seed: int) -> None:
    job = catalogue.double(seed)

    mark = judge.of_all(job, diagnose(jobs.snapshot(job)))

    assert mark.is_right, mark.said


def _shuffled(snapshot: Snapshot, shuffler: random.Random) -> Snapshot:
    ranks, groups = list(snapshot.ranks.items()), list(snapshot.groups.items())
    shuffler.shuffle(ranks)
    shuffler.shuffle(groups)
    return replace(snapshot, ranks=dict(ranks), groups=dict(groups))


def test_same_seed_gives_the_same_job() -> None:
    first, second = (catalogue.single("dataloader", 5) for _ in range(2))

    assert jobs.snapshot(first) == jobs.snapshot(second)
    assert isinstance(first, Job)


@SOME
@given(st.sampled_from(["none", *sorted(damage.DAMAGES)]), SEEDS)
def test_plain_groups_are_told_of_as_they_are_with_care(sort: str, seed: int) -> None:
    harm = damage.DAMAGES.get(sort, damage.none)
    snapshot = harm(catalogue.nth_single(seed), 0.1, random.Random(seed)).later

    looked = survey.survey(snapshot, DEFAULT)

    for group in snapshot.groups.values():
        told = plain.pending(looked, group, looked.standings.places(group.gid))
        if told is not None:
            collectives.keep_only_the_root(looked, told)
            careful = list(collectives.with_care(looked, group))
            # Whether members agree is known of these by their entries alone.
            assert mismatch.mark(looked, careful) == mismatch.mark(looked, [told])
            assert careful == [msgspec.structs.replace(told, queued=(), is_agreed=False)]


def test_most_groups_of_a_large_job_are_plain() -> None:
    snapshot = jobs.snapshot(large.stopped(1024))

    looked = survey.survey(snapshot, DEFAULT)

    waited_in = looked.standings.with_fronts
    groups = [snapshot.groups[gid] for gid in waited_in]
    told = [plain.pending(looked, one, looked.standings.places(one.gid)) for one in groups]
    assert told.count(None) <= len(told) / 100
