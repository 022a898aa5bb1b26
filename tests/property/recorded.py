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
    share: float = 0.05  # of the other ranks that are harmed
    part: str = ""  # of the benchmark that drew it, where that is not called as the harm

    def job(self) -> Job:
        return catalogue.single(self.fault, self.seed)

    def snapshot(self, job: Job) -> Snapshot:
        rng = Random(f"{self.part or self.harm}/{self.seed}")
        if self.harm in damage.DAMAGES:
            return damage.DAMAGES[self.harm](job, self.share, rng).later
        if self.harm:
            return forgery.forged(job, self.harm, rng).later
        return jobs.snapshot(job)


GARBAGE = "forged: garbage op"
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
    Case("counted call was not dumped: place unknown", "cascade", 900073, "not_dumped", share=0.1),
    Case("rank without dump beside a loader", "dataloader", 900077, "not_dumped", share=0.1),
    Case("silent member hid another root", "root_mismatch", 356, "silent", part="single"),
    Case("half of a lost node was named", "node_lost", 1500004, "silent", part="single"),
    Case("queues were full behind a lost node", "node_lost", 1500291, "silent", part="single"),
    Case("rank silent for longer joined", "node_lost", 1501275, "silent", part="single"),
    Case("nameless op proved an arrival", "checkpoint", 2600016, "garbage op", part=GARBAGE),
    Case("gather hid half of a lost node", "node_lost", 1501849, "silent", part="single"),
)
# Two faults of which the second had come to the first call that the other is missing from.
HIDDEN = (1500114, 1500198, 1500242)
