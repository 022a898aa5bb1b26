"""Diagnosis against generated jobs whose truth is known: python bench/generated.py.

Single faults with 5 % of the other ranks silent, double faults, healthy jobs in the middle of their
work, damaged and forged telemetry. Prints, per kind, how often the first finding names the true
ranks with the true kind; precision and recall of names; and how far confidence can be trusted.
Options: --jobs 2000 (single faults), --seed 0 (the first seed), --processes 2.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.synthetic import catalogue, damage, forgery, jobs, judge
from tests.synthetic.jobs import Job
from tests.synthetic.judge import Mark

from hangwatch_server.diagnose import diagnose

SILENT_SHARE = 0.05
DAMAGED_SHARE = 0.1
BATCH = 25
BUCKETS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
Task = tuple[str, int]  # part and seed


@dataclass(slots=True)
class Tally:
    """One line of the table."""

    jobs: int = 0
    right: int = 0
    right_conditions: int = 0
    harmful: int = 0


@dataclass(slots=True)
class Result:
    """All that was measured; `parts` by part ("single", "double", …), `kinds` by single fault."""

    parts: dict[str, Tally] = field(default_factory=dict)
    kinds: dict[str, Tally] = field(default_factory=dict)
    named_right: int = 0  # ranks named by first findings that have a part in the fault
    named: int = 0
    culprits: int = 0  # ranks that should have been named
    found: int = 0  # and were
    buckets: list[Tally] = field(default_factory=lambda: [Tally() for _ in BUCKETS[1:]])
    failures: list[tuple[str, Mark]] = field(default_factory=list)
    seconds: float = 0.0


def measure(single: int = 2000, seed: int = 0, processes: int = 2) -> Result:
    """Diagnose `single` single faults and proportionally many jobs of the other parts."""
    started_s = time.monotonic()
    tasks = list(_tasks(single, seed))
    batches = [tasks[start : start + BATCH] for start in range(0, len(tasks), BATCH)]
    result = Result()
    with ProcessPoolExecutor(processes) as pool:
        for marks in pool.map(_diagnose_batch, batches):
            for part, mark in marks:
                _count(result, part, mark)
    result.seconds = time.monotonic() - started_s
    return result


def _tasks(single: int, seed: int) -> Iterable[Task]:
    sizes = {"single": single, "double": single * 3 // 20, "healthy": single // 10}
    parts = (*damage.DAMAGES, *(f"forged: {sort}" for sort in forgery.SORTS))
    sizes.update(dict.fromkeys(parts, single // 25))
    for part, size in sizes.items():
        for number in range(size):
            yield part, seed + number


def _diagnose_batch(tasks: Sequence[Task]) -> list[tuple[str, Mark]]:
    return [(part, replace(_diagnose(part, seed), seed=seed)) for part, seed in tasks]


def _diagnose(part: str, seed: int) -> Mark:
    rng = Random(f"{part}/{seed}")
    if part == "double":
        job = catalogue.double(seed)
        return judge.of_all(job, diagnose(jobs.snapshot(job)))
    if part == "healthy":
        job = catalogue.nth_healthy(seed)
        earlier, later = jobs.pair(job)
        return judge.of_healthy(job, diagnose(earlier), diagnose(later))
    job = catalogue.nth_single(seed)
    damaged = _damage(part, job, rng)
    return judge.of_first(job, diagnose(damaged.later), damaged.touched)


def _damage(part: str, job: Job, rng: Random) -> damage.Damaged:
    if part == "single":
        return damage.silent(job, SILENT_SHARE, rng)
    if part in damage.DAMAGES:
        return damage.DAMAGES[part](job, DAMAGED_SHARE, rng)
    return forgery.forged(job, part.removeprefix("forged: "), rng)


def _count(result: Result, part: str, mark: Mark) -> None:
    tallies = [result.parts.setdefault(part, Tally())]
    if part == "single":
        tallies.append(result.kinds.setdefault(mark.fault, Tally()))
        result.named += mark.named
        result.named_right += mark.named_right
        result.culprits += mark.culprits
        result.found += mark.found
    if part != "healthy" and mark.named:
        tallies.append(result.buckets[_bucket(mark.confidence)])
    for tally in tallies:
        tally.jobs += 1
        tally.right += mark.is_right
        tally.right_conditions += mark.is_condition_right
        tally.harmful += mark.is_harmful
    if not mark.is_right or mark.is_harmful:
        result.failures.append((part, mark))


def _bucket(confidence: float) -> int:
    for number, upper in enumerate(BUCKETS[1:]):
        if confidence < upper:
            return number
    return len(BUCKETS) - 2


def _precision(result: Result) -> float:
    return result.named_right / max(1, result.named)


def _recall(result: Result) -> float:
    return result.found / max(1, result.culprits)


def lines(result: Result) -> list[str]:
    """The tables as text."""
    text = ["Single faults, 5 % of the other ranks silent", _head("fault")]
    text += [_line(name, tally) for name, tally in sorted(result.kinds.items())]
    text += ["", "All parts", _head("part")]
    text += [_line(name, tally) for name, tally in result.parts.items()]
    precision, recall = _precision(result), _recall(result)
    text += ["", f"Names in single faults: precision {precision:.4f}, recall {recall:.4f}"]
    text += ["", f"{'confidence':<26} {'answers':>8} {'right':>7}"]
    for lower, upper, tally in zip(BUCKETS, BUCKETS[1:], result.buckets, strict=False):
        share = f"{tally.right / tally.jobs:7.3f}" if tally.jobs else "      -"
        text.append(f"{lower:.1f} to {upper:<19.1f} {tally.jobs:>8} {share}")
    text += ["", f"{result.seconds:.0f} s"]
    return text


def _head(first: str) -> str:
    return f"{first:<26} {'jobs':>6} {'right':>6} {'share':>7} {'condition':>10} {'harmful':>8}"


def _line(name: str, tally: Tally) -> str:
    return (
        f"{name:<26} {tally.jobs:>6} {tally.right:>6} {tally.right / tally.jobs:>7.4f} "
        f"{tally.right_conditions:>10} {tally.harmful:>8}"
    )


def show(result: Result, say: Callable[[str], object] = print, most: int = 20) -> None:
    for line in lines(result):
        say(line)
    for part, mark in result.failures[:most]:
        say(f"  {part}: {mark.fault} seed {mark.seed}: said {mark.said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000, help="single faults")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2, choices=(1, 2))
    options = parser.parse_args()

    show(measure(options.jobs, options.seed, options.processes))


if __name__ == "__main__":
    main()
