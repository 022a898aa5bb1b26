"""Generated jobs of which diagnosis once said something wrong, by seed, each with what it was."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.synthetic import catalogue, damage, forgery, jobs
from tests.synthetic.jobs import Job

from hangwatch_server.model import Snapshot


@dataclass(frozen=True, slots=True)
class Case:
    """`harm` is a damage, a forgery or "" (the job as it is)."""

    name: str
    fault: str
    seed: int
    harm: str = ""
    must_be_right: bool = True  # False: it may say that it does not know

    def job(self) -> Job:
        return catalogue.single(self.fault, self.seed)

    def snapshot(self, job: Job) -> Snapshot:
        rng = Random(f"{self.harm}/{self.seed}")
        if self.harm in damage.DAMAGES:
            return damage.DAMAGES[self.harm](job, 0.05, rng).later
        if self.harm:
            return forgery.forged(job, self.harm, rng).later
        return jobs.snapshot(job)


CASES = (
    Case("lost rank's queued calls joined the certain culprit", "out_of_memory", 25, "silent"),
    Case("lost rank was named beside the rank in a checkpoint", "checkpoint", 42, "silent"),
    Case("late rank's GPU was called busy", "compile", 2, "stale"),
    Case("ring had wrapped over the oldest unfinished call", "crashed", 3, "wrapped"),
    Case("ring had wrapped and five ranks were named", "stopped", 74, "wrapped"),
    Case("rank spoke of a group of others", "user_code", 1024, "foreign group"),
    Case("receive from a rank outside the job", "dataloader", 1029, "impossible peers", False),
    Case(
        "finished collective of the future broke a tie's path",
        "tie",
        1018,
        "finished the future",
        False,
    ),
)
