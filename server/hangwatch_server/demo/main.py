"""The body of `hangwatch demo`: bring up the stage, run one case, print its verdict."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from hangwatch_agent.wire import Depth
from hangwatch_server.demo import cases, judge, report
from hangwatch_server.demo.cases import Case, Evidence
from hangwatch_server.demo.stage import Connect, RunningJob, Stage, has_torch, make_folder
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import State

POLL_S = 0.25
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# How long each kind of case may take from its start to its end, generous for a loaded machine.
DEADLINE_S = {
    Evidence.HARD: 90.0,
    Evidence.FROZEN: 120.0,
    Evidence.PATIENT: 180.0,
    Evidence.NONE: 180.0,
}


def main(*, case_name: str | None, once: bool, list_only: bool, connect: Connect) -> int:
    """Return 0 only when the case's verdict is the right one; KeyboardInterrupt before that."""
    if list_only:
        for line in report.case_lines(cases.load()):
            print(line)
        return 0
    case = cases.find(case_name) if case_name else cases.load()[0]
    if not has_torch():
        raise HangwatchError("the demo runs a real training job: pip install torch, then try again")
    with open_stage(connect) as stage:
        return _play(stage, case, once)


@contextlib.contextmanager
def open_stage(connect: Connect) -> Iterator[Stage]:
    """A stage in a folder of its own; whatever happens, nothing of it is left."""
    folder = Path(tempfile.gettempdir()) / f"hangwatch-demo-{secrets.token_hex(8)}"
    stage = Stage(folder, connect)
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupt)
    try:
        folder.mkdir(mode=0o700)
        make_folder(folder)
        yield stage
    finally:
        _ignore_signals()
        stage.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    _ignore_signals()
    _say("\nstopping")
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    """From here on the end is under way, and a second Ctrl-C must not cut it short."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _play(stage: Stage, case: Case, once: bool) -> int:
    _say(f"case {case.name}: {case.title}")
    _say("starting the server with its own Postgres …")
    stage.start_server()
    _say("starting two agents: node-a and node-b …")
    stage.start_agents()
    if case.depth is Depth.BARE:
        stage.start_adopting_agent()
    _say(f"starting the job: {case.ranks} ranks, {case.program}; see {stage.url}/")
    started_s = time.monotonic()
    job = stage.start_job(case, case.name)
    verdict = _await_verdict(stage, job, started_s + DEADLINE_S[case.evidence])
    found = judge.differences(case, verdict)
    found += judge.of_incidents(case, count_incidents(stage, verdict))
    _print_outcome(stage, verdict, found, time.monotonic() - started_s)
    if not once:
        _say("Ctrl-C ends the job, the agents and the server.")
        with contextlib.suppress(KeyboardInterrupt):  # the end that was offered, not a failure
            signal.pause()
    return 1 if found else 0


def _await_verdict(stage: Stage, job: RunningJob, deadline_s: float) -> dict[str, Any]:
    """Follow the job until its verdict is final for the case, printing each change of state."""
    shown = ""
    while True:
        verdict = find_verdict(stage, job.name)
        if verdict is not None and verdict["state"] != shown:
            shown = verdict["state"]
            _say(report.row(shown, verdict["summary"] or verdict["limits"]["why"]))
        if verdict is not None and is_final(stage, job.case, verdict):
            return verdict
        if time.monotonic() > deadline_s:
            if verdict is None:
                raise HangwatchError(
                    f"the job never appeared; its log ends:\n{_job_tail(stage, job)}"
                )
            return verdict
        time.sleep(POLL_S)


def is_final(stage: Stage, case: Case, verdict: dict[str, Any]) -> bool:
    """Whether nothing better is to come: the expected verdict, or the end of a healthy job."""
    if case.is_healthy:
        return verdict["state"] in (State.FINISHED, State.FAILED, State.HUNG)
    is_expected = not judge.differences(case, verdict)
    return is_expected and count_incidents(stage, verdict) >= case.expected_incidents


def count_incidents(stage: Stage, verdict: dict[str, Any]) -> int:
    """How many incidents of the verdict's job, over all its attempts, people are shown."""
    return len(stage.client.get("/incidents", job=verdict["job"])["items"])


def find_verdict(stage: Stage, name: str) -> dict[str, Any] | None:
    """The newest verdict of the job with this name; None while nobody has reported it."""
    items = stage.client.get("/jobs", q=name)["items"]
    return next((item["verdict"] for item in items if item["name"] == name), None)


def _print_outcome(stage: Stage, verdict: dict[str, Any], found: list[str], took_s: float) -> None:
    page = f"{stage.url}/jobs/{verdict['job']}"
    if verdict["incident"]:
        page = f"{stage.url}/incidents/{verdict['incident']}"
    for line in report.verdict_lines(verdict, page):
        _say(line)
    if found:
        _say(report.row("outcome", "not the expected verdict: " + "; ".join(found)))
    else:
        _say(report.row("outcome", f"the expected verdict, {took_s:.0f} s after the job's start"))


def _job_tail(stage: Stage, job: RunningJob) -> str:
    return "\n".join(stage.tail(log.stem) for log in job.logs)


def _say(text: str) -> None:
    print(text, flush=True)  # at once, into a pipe as well
