"""Counts rows: how often right, precision and recall of ranks, times, confidence. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.scorecard.rows import Row, TraceAnswer, ranks_of

BINS = ((0.0, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 1.01))


@dataclass(frozen=True, slots=True)
class Naming:
    """Ranks named against ranks that are culprits, over all faulty cases."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float | None:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        return self.right / (self.right + self.missed) if self.right + self.missed else None


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts whose confidence lies between two limits."""

    low: float
    high: float
    size: int
    mean: float
    right: float  # share


def naming(pairs: Iterable[tuple[str, str]]) -> Naming:
    """From (named, culprits), both as range text."""
    right = wrong = missed = 0
    for named_text, true_text in pairs:
        named, true = ranks_of(named_text), ranks_of(true_text)
        right += len(named & true)
        wrong += len(named - true)
        missed += len(true - named)
    return Naming(right, wrong, missed)


def of_verdicts(rows: Sequence[Row]) -> Naming:
    """A healthy job's alarm counts as a wrong name, whoever it names."""
    return naming((row.given.culprits, row.expected.culprits) for row in rows if _spoke(row))


def _spoke(row: Row) -> bool:
    return row.is_false_alarm or not row.is_healthy


def of_traces(answers: Iterable[tuple[TraceAnswer, Row]]) -> Naming:
    return naming((answer.named, row.expected.culprits) for answer, row in answers)


def is_trace_right(answer: TraceAnswer, row: Row) -> bool:
    """Whether it names exactly the culprits; with nobody to blame, whether it blames nobody."""
    return not answer.error and ranks_of(answer.named) == ranks_of(row.expected.culprits)


def reliability(rows: Sequence[Row]) -> list[Bin]:
    """How often verdicts of each confidence are right; bins without a verdict are left out."""
    told = [(row.confidence, row.is_right) for row in rows if row.confidence is not None]
    found = []
    for low, high in BINS:
        inside = [(confidence, right) for confidence, right in told if low <= confidence < high]
        if inside:
            mean = sum(confidence for confidence, _ in inside) / len(inside)
            share = sum(right for _, right in inside) / len(inside)
            found.append(Bin(low, min(high, 1.0), len(inside), mean, share))
    return found


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Expected calibration error: distance of confidence from the share right, by bin size."""
    size = sum(one.size for one in bins)
    return sum(abs(one.mean - one.right) * one.size for one in bins) / size if size else None


def p90(values: Iterable[float | None]) -> float | None:
    """The value that nine of ten do not exceed (nearest rank)."""
    known = sorted(value for value in values if value is not None)
    return known[math.ceil(0.9 * len(known)) - 1] if known else None
