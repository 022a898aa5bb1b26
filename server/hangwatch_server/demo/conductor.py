"""Plays many cases on one stage, a few at a time, and times their verdicts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hangwatch_server.demo import judge
from hangwatch_server.demo.cases import Case
from hangwatch_server.demo.main import DEADLINE_S, find_verdict, is_final
from hangwatch_server.demo.stage import RunningJob, Stage
from hangwatch_server.model import State

# Starting a rank costs seconds of one core; more at a time would starve the jobs that already run.
STARTING = 2
ALIVE = 5  # and one that a test beside them may keep
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
    differences: list[str] = field(default_factory=list)
    log: str = ""


class Conductor:
    """Plays all cases in the background from the start; `outcome(name)` waits for one."""

    def __init__(self, stage: Stage, cases: Iterable[Case]) -> None:
        self._stage = stage
        self._starting = threading.Semaphore(STARTING)
        self._pool = ThreadPoolExecutor(ALIVE, thread_name_prefix="case")
        self._outcomes: dict[str, Future[Outcome]] = {
            case.name: self._pool.submit(self._play, case) for case in cases
        }

    def outcome(self, name: str) -> Outcome:
        return self._outcomes[name].result()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _play(self, case: Case) -> Outcome:
        outcome = Outcome(case)
        with self._starting:
            job = self._stage.start_job(case, case.name)
            self._await_start(job)
        try:
            self._follow(job, outcome)
        finally:
            job.stop()
        outcome.log = "\n".join(self._stage.tail(log.stem) for log in job.logs)
        return outcome

    def _await_start(self, job: RunningJob) -> None:
        """Started means that a rank printed progress: from there on the job costs little."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while job.last_progress_s() is None and time.monotonic() < deadline_s:
            time.sleep(POLL_S)

    def _follow(self, job: RunningJob, outcome: Outcome) -> None:
        deadline_s = time.monotonic() + DEADLINE_S[job.case.evidence]
        while time.monotonic() < deadline_s:
            verdict = find_verdict(self._stage, job.name)
            if verdict is not None:
                self._note(job, outcome, verdict)
                if is_final(job.case, verdict):
                    break
            time.sleep(POLL_S)
        outcome.differences = (
            judge.differences(job.case, outcome.verdict)
            if outcome.verdict is not None
            else ["the job never appeared"]
        )

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
