"""Plays many cases on one stage, a few at a time, and times their verdicts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from hangwatch_agent.wire import Depth
from hangwatch_server.demo import judge
from hangwatch_server.demo.cases import Case, Evidence
from hangwatch_server.demo.main import DEADLINE_S, count_incidents, find_verdict, is_final
from hangwatch_server.demo.stage import RunningJob, Stage
from hangwatch_server.model import State

# Starting a rank costs seconds of one core; more at a time would starve the jobs that already run.
STARTING = 2
ALIVE = 7  # and one that a test beside them may keep; those that have started mostly sleep
# The longest first, so that at the end nobody waits for one that began late.
ORDER = (Evidence.PATIENT, Evidence.NONE, Evidence.FROZEN, Evidence.HARD)
START_TIMEOUT_S = 90.0
POLL_S = 0.25


@dataclass(slots=True)
class Outcome:
    """What one case came to. Seconds since the last progress that any rank printed."""

    case: Case
    verdict: dict[str, Any] | None = None
    named_s: float | None = None  # until suspicion or hang first had the right kind and culprits
    hung_s: float | None = None  # until the right verdict was confirmed
    states: list[str] = field(default_factory=list)
    incidents: int = 0  # of the job, as far as people are shown them
    differences: list[str] = field(default_factory=list)
    log: str = ""


# Called once per case when its verdict is final or its time is up, while the job still runs.
Witness = Callable[[RunningJob, Outcome], None]


def _no_witness(_job: RunningJob, _outcome: Outcome) -> None:
    """Nobody else wants to see the job."""


class Conductor:
    """Plays all cases in the background from the start; `outcome(name)` waits for one."""

    def __init__(
        self,
        stage: Stage,
        cases: Iterable[Case],
        witness: Witness = _no_witness,
        *,
        at_once: int = ALIVE,
    ) -> None:
        cases = sorted(cases, key=lambda case: ORDER.index(case.evidence))
        if any(case.depth is Depth.BARE for case in cases):
            stage.start_adopting_agent()
        self._stage = stage
        self._witness = witness
        self._starting = threading.Semaphore(STARTING)
        self._is_abandoned = threading.Event()
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="case")
        self._outcomes: dict[str, Future[Outcome]] = {
            case.name: self._pool.submit(self._play, case) for case in cases
        }

    def outcome(self, name: str) -> Outcome:
        return self._outcomes[name].result()

    def outcomes(self) -> Iterator[Outcome]:
        """Each case's as it comes, the quickest first."""
        for ended in as_completed(self._outcomes.values()):
            yield ended.result()

    def abandon(self) -> None:
        """Start no more cases, and let those that play end soon with what they have."""
        self._is_abandoned.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _play(self, case: Case) -> Outcome:
        outcome = Outcome(case)
        with self._starting:
            if self._is_abandoned.is_set():
                return outcome
            job = self._stage.start_job(case, case.name)
            self._await_start(job)
        try:
            self._follow(job, outcome)
            self._witness(job, outcome)
        finally:
            job.stop()
        outcome.log = "\n".join(self._stage.tail(log.stem) for log in job.logs)
        return outcome

    def _await_start(self, job: RunningJob) -> None:
        """Started means that a rank printed progress: from there on the job costs little."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while job.last_progress_s() is None and time.monotonic() < deadline_s:
            if self._is_abandoned.wait(POLL_S):
                return

    def _follow(self, job: RunningJob, outcome: Outcome) -> None:
        deadline_s = time.monotonic() + DEADLINE_S[job.case.evidence]
        while time.monotonic() < deadline_s and not self._is_abandoned.is_set():
            verdict = find_verdict(self._stage, job.name)
            if verdict is not None:
                self._note(job, outcome, verdict)
                if is_final(self._stage, job.case, verdict):
                    break
            self._is_abandoned.wait(POLL_S)
        self._judge(outcome)

    def _judge(self, outcome: Outcome) -> None:
        if outcome.verdict is None:
            outcome.differences = ["the job never appeared"]
            return
        outcome.incidents = count_incidents(self._stage, outcome.verdict)
        outcome.differences = [
            *judge.differences(outcome.case, outcome.verdict),
            *judge.of_incidents(outcome.case, outcome.incidents),
        ]

    def _note(self, job: RunningJob, outcome: Outcome, verdict: dict[str, Any]) -> None:
        outcome.verdict = verdict
        if not outcome.states or outcome.states[-1] != verdict["state"]:
            outcome.states.append(verdict["state"])
        last_s = job.last_progress_s()
        if last_s is None or not judge.is_named(job.case, verdict):
            return
        since_s = time.monotonic() - last_s
        outcome.named_s = since_s if outcome.named_s is None else outcome.named_s
        if verdict["state"] == State.HUNG and outcome.hung_s is None:
            outcome.hung_s = since_s
