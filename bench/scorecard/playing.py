"""Plays cases on one stage, several at once, and hands each out as a row when it is through."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.scorecard import peers, rows

from hangwatch_agent import client
from hangwatch_server.demo.cases import Case
from hangwatch_server.demo.conductor import Conductor, Outcome
from hangwatch_server.demo.stage import RunningJob, Stage, make_folder


def play(cases: Sequence[Case], *, at_once: int, asks_peers: bool) -> Iterator[rows.Row]:
    """One row per case, as each ends. However this ends, nothing that it started is left."""
    with _stage() as stage:
        answers: dict[str, rows.Peers] = {}

        def witness(job: RunningJob, outcome: Outcome) -> None:
            if asks_peers and not outcome.case.is_healthy and outcome.verdict is not None:
                answers[job.name] = peers.ask(stage, job, outcome.verdict)

        conductor = Conductor(stage, cases, witness, at_once=at_once)
        try:
            for outcome in conductor.outcomes():
                yield rows.of_outcome(outcome, answers.get(outcome.case.name))
        finally:
            conductor.abandon()
            stage.stop()
            conductor.close()


@contextlib.contextmanager
def _stage() -> Iterator[Stage]:
    folder = make_folder(Path(tempfile.mkdtemp(prefix="hangwatch-scorecard-")))
    stage = Stage(folder, client.Client)
    try:
        stage.start_server()
        stage.start_agents()
        yield stage
    finally:
        stage.stop()
        shutil.rmtree(folder, ignore_errors=True)
