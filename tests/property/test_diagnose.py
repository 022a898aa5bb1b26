"""Properties of diagnosis over meshes whose culprit is known."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import mesh

from hangwatch_server import ranges
from hangwatch_server.diagnose import diagnose, path
from hangwatch_server.model import Finding, Kind, Snapshot

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)).filter(
    lambda shape: shape[0] * shape[1] * shape[2] >= 2
)
QUICK = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def hangs(draw: st.DrawFn) -> tuple[mesh.Mesh, int, list[int]]:
    job = mesh.mesh(*draw(SHAPES))
    culprit = draw(st.integers(0, job.size - 1))
    stops_after = draw(st.integers(0, 3 * len(job.order[culprit]) - 1))
    return job, culprit, mesh.run(job, {culprit: stops_after})


def main_of(snapshot: Snapshot) -> Finding:
    return diagnose(snapshot)[0]


@QUICK
@given(hangs())
def test_true_culprit_is_the_only_one_named(hang: tuple[mesh.Mesh, int, list[int]]) -> None:
    job, culprit, done = hang

    found = diagnose(mesh.snapshot(job, [culprit], done))

    assert len(found) == 1
    assert found[0].kind is Kind.MISSING_RANKS
    assert found[0].culprit_ranks == str(culprit)
    assert set(ranges.parse(found[0].waiting)) == set(range(job.size)) - {culprit}


@QUICK
@given(hangs(), st.randoms(use_true_random=False))
def test_order_of_ranks_and_groups_never_matters(
    hang: tuple[mesh.Mesh, int, list[int]], shuffler: random.Random
) -> None:
    job, culprit, done = hang
    snapshot = mesh.snapshot(job, [culprit], done)
    ranks, groups = list(snapshot.ranks.items()), list(snapshot.groups.items())
    shuffler.shuffle(ranks)
    shuffler.shuffle(groups)

    shuffled = replace(snapshot, ranks=dict(ranks), groups=dict(groups))

    assert diagnose(shuffled) == diagnose(snapshot)


@QUICK
@given(hangs(), st.data())
def test_silent_others_only_lower_the_confidence(
    hang: tuple[mesh.Mesh, int, list[int]], data: st.DataObject
) -> None:
    job, culprit, done = hang
    others = [rank for rank in range(job.size) if rank != culprit]
    silent = data.draw(st.sets(st.sampled_from(others), max_size=max(0, len(others) // 3)))
    clear = main_of(mesh.snapshot(job, [culprit], done))

    dimmed = main_of(mesh.snapshot(job, [culprit], done, silent=silent))

    assert culprit in ranges.parse(dimmed.culprit_ranks)
    assert dimmed.culprit_ranks == str(culprit) or dimmed.confidence <= clear.confidence
    assert dimmed.confidence <= clear.confidence
    assert dimmed.coverage.silent == ranges.text(silent)


@QUICK
@given(hangs())
def test_silent_culprit_is_never_replaced_by_a_confident_other(
    hang: tuple[mesh.Mesh, int, list[int]],
) -> None:
    job, culprit, done = hang

    found = main_of(mesh.snapshot(job, [culprit], done, silent=[culprit]))

    assert found.culprit_ranks == str(culprit)
    assert found.confidence <= 0.5
    assert not found.is_hard


@QUICK
@given(hangs())
def test_every_waiting_rank_has_a_path_that_ends_at_the_culprit(
    hang: tuple[mesh.Mesh, int, list[int]],
) -> None:
    job, culprit, done = hang
    snapshot = mesh.snapshot(job, [culprit], done)

    for rank in range(job.size):
        steps = path(snapshot, rank)
        if rank == culprit:
            assert steps == ()
        else:
            assert steps[0].rank == rank
            assert steps[-1].rank == culprit


@QUICK
@given(SHAPES)
def test_finished_job_is_never_accused(shape: tuple[int, int, int]) -> None:
    job = mesh.mesh(*shape)
    done = mesh.run(job, {})

    assert main_of(mesh.snapshot(job, [], done)).culprits == ()
