"""The body of `hangwatch demo`: bring up the stage, run one case, print its verdict."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hangwatch_server.demo import cases, judge, report
from hangwatch_server.demo.cases import Case, Evidence
from hangwatch_server.demo.stage import Connect, RunningJob, Stage, has_torch, make_folder
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import State

POLL_S = 0.25
# How long each kind of case may take from its start to its end, generous for a loaded machine.
DEADLINE_S = {
    Evidence.HARD: 90.0,
    Evidence.FROZEN: 120.0,
    Evidence.PATIENT: 180.0,
    Evidence.NONE: 180.0,
}


def main(*, case_name: str | None, once: bool, list_only: bool, connect: Connect) -> int:
    """Return 0 only when the case's verdict is the right one."""
    if list_only:
        for case in cases.load():
            print(f"{case.name:20} {case.title}")
        return 0
    case = cases.find(case_name) if case_name else cases.load()[0]
    if not has_torch():
        raise HangwatchError("the demo runs a real training job: pip install torch, then try again")
    with _stage(connect) as stage:
        return _play(stage, case, once)


@contextlib.contextmanager
def _stage(connect: Connect) -> Iterator[Stage]:
    # SIGTERM must end the stage's processes too.
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    folder = make_folder(Path(tempfile.mkdtemp(prefix="hangwatch-demo-")))
    stage = Stage(folder, connect)
    try:
        yield stage
    except KeyboardInterrupt:
        print("\nstopping")
    finally:
        stage.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _play(stage: Stage, case: Case, once: bool) -> int:
    print(f"case {case.name}: {case.title}")
    print("starting the server with its own Postgres …")
    stage.start_server()
    print("starting two agents: node-a and node-b …")
    stage.start_agents()
    print(f"starting the job: {case.ranks} ranks, {case.program}; see {stage.url}/")
    started_s = time.monotonic()
    job = stage.start_job(case, case.name)
    verdict = _await_verdict(stage, job, started_s + DEADLINE_S[case.evidence])
    found = judge.differences(case, verdict)
    _print_outcome(stage, verdict, found, time.monotonic() - started_s)
    if not once:
        print("Ctrl-C ends the job, the agents and the server.")
        signal.pause()
    return 1 if found else 0


def _await_verdict(stage: Stage, job: RunningJob, deadline_s: float) -> dict[str, Any]:
    """Follow the job until its verdict is final for the case, printing each change of state."""
    shown = ""
    while True:
        verdict = find_verdict(stage, job.name)
        if verdict is not None and verdict["state"] != shown:
            shown = verdict["state"]
            print(f"  {shown}: {verdict['summary'] or verdict['limits']['why']}")
        if verdict is not None and is_final(job.case, verdict):
            return verdict
        if time.monotonic() > deadline_s:
            if verdict is None:
                raise HangwatchError(
                    f"the job never appeared; its log ends:\n{_job_tail(stage, job)}"
                )
            return verdict
        time.sleep(POLL_S)


def is_final(case: Case, verdict: dict[str, Any]) -> bool:
    """Whether nothing better is to come: a confirmed hang, or the end of a healthy job."""
    if case.is_healthy:
        return verdict["state"] in (State.FINISHED, State.FAILED, State.HUNG)
    return not judge.differences(case, verdict)


def find_verdict(stage: Stage, name: str) -> dict[str, Any] | None:
    """The newest verdict of the job with this name; None while nobody has reported it."""
    items = stage.client.get("/jobs", q=name)["items"]
    return next((item["verdict"] for item in items if item["name"] == name), None)


def _print_outcome(stage: Stage, verdict: dict[str, Any], found: list[str], took_s: float) -> None:
    page = f"{stage.url}/jobs/{verdict['job']}"
    if verdict["incident"]:
        page = f"{stage.url}/incidents/{verdict['incident']}"
    for line in report.verdict_lines(verdict, page):
        print(line)
    if found:
        print("  not the expected verdict: " + "; ".join(found))
    else:
        print(f"  the expected verdict, {took_s:.0f} s after the job's start")


def _job_tail(stage: Stage, job: RunningJob) -> str:
    return "\n".join(stage.tail(log.stem) for log in job.logs)
