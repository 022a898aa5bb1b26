"""Compares what diagnosis says of a synthetic job with its truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.synthetic.jobs import Job

from hangwatch_server import ranges
from hangwatch_server.model import Finding, Kind

SURE = 0.6  # a confidence from which a wrong name does harm


@dataclass(frozen=True, slots=True)
class Mark:
    """How one answer did."""

    fault: str
    seed: int
    is_right: bool  # kind and culprits of the first finding
    is_right_kind: bool
    is_condition_right: bool
    is_harmful: bool  # an innocent rank was named with SURE or more
    confidence: float
    said: str


def of_first(job: Job, findings: Sequence[Finding]) -> Mark:
    """The first finding names whom it should, no more and no fewer, and says the right kind."""
    first, truth = findings[0], job.truth
    named = frozenset(ranges.parse(first.culprit_ranks)) if first.culprit_ranks else frozenset()
    is_kind = first.kind in truth.kinds
    is_named = truth.culprits <= named <= truth.allowed
    return Mark(
        job.fault,
        job.seed,
        is_kind and is_named,
        is_kind,
        _are_conditions_right(job, first),
        _is_harmful(job, findings),
        first.confidence,
        f"{first.kind.value} {first.culprit_ranks or '-'} {first.confidence}",
    )


def of_all(job: Job, findings: Sequence[Finding]) -> Mark:
    """All culprits are named by the findings together, and nobody else is."""
    truth = job.truth
    named = {rank for one in findings for rank in ranges.parse(one.culprit_ranks)}
    mark = of_first(job, findings)
    is_right = truth.culprits <= named <= truth.allowed
    kinds = {one.kind for one in findings if one.culprit_ranks}
    said = "; ".join(f"{f.kind.value} {f.culprit_ranks or '-'} {f.confidence}" for f in findings)
    return Mark(
        "double",
        job.seed,
        is_right and kinds <= truth.kinds,
        kinds <= truth.kinds,
        mark.is_condition_right,
        mark.is_harmful,
        mark.confidence,
        f"{job.fault}: {said}",
    )


def of_healthy(job: Job, earlier: Sequence[Finding], later: Sequence[Finding]) -> Mark:
    """Nobody is accused: no hard evidence, twice the same, and no wait over a second's noise."""
    known = {one.key for one in earlier if one.is_hard}
    accused = [one for one in later if one.is_hard and one.key in known and one.kind != Kind.NONE]
    if job.fault != "slow_step":
        accused += [one for one in later if one.culprits and one.confidence >= SURE]
    said = "; ".join(f"{f.kind.value} {f.culprit_ranks or '-'} {f.confidence}" for f in accused)
    is_calm = not accused
    return Mark(job.fault, job.seed, is_calm, is_calm, True, not is_calm, 1.0, said)


def _is_harmful(job: Job, findings: Sequence[Finding]) -> bool:
    for one in findings:
        named = frozenset(ranges.parse(one.culprit_ranks))
        if one.confidence >= SURE and not named <= job.truth.allowed:
            return True
    return False


def _are_conditions_right(job: Job, first: Finding) -> bool:
    return all(
        culprit.condition in job.truth.conditions.get(culprit.rank, {culprit.condition})
        for culprit in first.culprits
    )
