"""Compares what diagnosis says of a synthetic job with its truth."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from tests.synthetic.jobs import Job

from hangwatch_server import ranges
from hangwatch_server.model import Finding

SURE = 0.6  # a confidence from which a wrong name does harm


@dataclass(frozen=True, slots=True)
class Mark:
    """How one answer did; the last four count ranks, `found` those of the culprits it names."""

    fault: str
    seed: int
    is_right: bool  # kind and culprits
    is_condition_right: bool
    is_harmful: bool  # an innocent rank was named with SURE or more
    confidence: float
    said: str
    named: int = 0
    named_right: int = 0
    culprits: int = 0
    found: int = 0


def of_first(job: Job, findings: Sequence[Finding], unheard: Set[int] = frozenset()) -> Mark:
    """The first finding names whom it should, no more and no fewer, and says the right kind.

    Where nobody is to blame, an unsure guess at ranks that are `unheard` is no mistake: nothing
    tells them from a culprit.
    """
    first, truth = findings[0], job.truth
    named = _named(first)
    is_right = truth.culprits <= named <= truth.allowed and first.kind in truth.kinds
    if not truth.culprits and named and named <= unheard | truth.allowed:
        is_right = first.confidence < SURE
    return Mark(
        job.fault,
        job.seed,
        is_right,
        _are_conditions_right(job, first),
        is_harmful(job, findings),
        first.confidence,
        _said([first]),
        len(named),
        len(named & truth.allowed),
        len(truth.culprits),
        len(named & truth.culprits),
    )


def of_all(job: Job, findings: Sequence[Finding]) -> Mark:
    """All culprits are named by the findings together, and nobody else is."""
    truth = job.truth
    blaming = [one for one in findings if one.culprit_ranks]
    named = frozenset[int]().union(*(_named(one) for one in blaming))
    are_kinds = all(one.kind in truth.kinds for one in blaming)
    return Mark(
        job.fault,
        job.seed,
        truth.culprits <= named <= truth.allowed and are_kinds,
        all(_are_conditions_right(job, one) for one in blaming),
        is_harmful(job, findings),
        findings[0].confidence,
        _said(findings),
        len(named),
        len(named & truth.allowed),
        len(truth.culprits),
        len(named & truth.culprits),
    )


def of_healthy(job: Job, earlier: Sequence[Finding], later: Sequence[Finding]) -> Mark:
    """Nobody is accused: what is not there in both of two samples is no accusation.

    A slow step has a wait and a rank that it is for: to name it is right, to call it hard is not.
    """
    known = {one.key for one in earlier}
    lasting = [one for one in later if one.key in known]
    accused = [one for one in lasting if one.is_hard]
    if job.fault != "slow_step":
        accused += [one for one in lasting if one.culprits and one.confidence >= SURE]
    is_calm = not accused
    return Mark(job.fault, job.seed, is_calm, True, not is_calm, 0.0, _said(accused))


def is_harmful(job: Job, findings: Sequence[Finding]) -> bool:
    """Whether an innocent rank is named, alone or beside others, by somebody who sounds sure."""
    sure = [one for one in findings if one.confidence >= SURE]
    return any(not _named(one) <= job.truth.allowed for one in sure)


def _named(finding: Finding) -> frozenset[int]:
    return frozenset(ranges.parse(finding.culprit_ranks)) if finding.culprit_ranks else frozenset()


def _are_conditions_right(job: Job, finding: Finding) -> bool:
    known = job.truth.conditions
    return all(one.condition in known.get(one.rank, {one.condition}) for one in finding.culprits)


def _said(findings: Sequence[Finding]) -> str:
    return "; ".join(
        f"{one.kind.value} {one.culprit_ranks or '-'} ({one.confidence})" for one in findings
    )
