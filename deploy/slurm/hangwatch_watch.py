#!/usr/bin/env python3
"""Watches the Slurm job it runs in, and gets it off the node that hangs it. For a job script:

    python3 hangwatch_watch.py --requeue &
    srun hangwatch run -- torchrun …

It asks `hangwatch check` how the job is. When it hangs, the evidence is made safe with `hangwatch
hold`; then, only with --requeue, the job goes back into the queue without the nodes to blame.
Without --requeue it prints what it would do. Needs Python 3.9, `hangwatch` and `scontrol`.

Safe to run twice and to lose: it acts on the run of the job that it was started in and on no other,
never more often than --max-requeues, and never excludes a node outside the job.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Mapping, NoReturn, Sequence

HUNG = 1  # exit code of `hangwatch check`: hung or failed
# A failed rank takes its job down within seconds; what still stands after this stands for good.
FAILED_FOR_S = 60.0
COMMAND_S = 60.0
TRIES = 10
RESTARTS = ("restart", "restart_excluding")


@dataclass(frozen=True)
class Run:
    """One run of one Slurm job: a requeue makes another run of the same job."""

    number: str
    restarts: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What is to be done about a verdict, and the sentence that says why."""

    is_restart: bool
    exclude: tuple[str, ...]
    why: str


def plan(verdict: Mapping[str, Any], run: Run, blame: str, most_requeues: int) -> Plan:
    """The restart that a verdict of a hung or failed job asks for, if it asks for one."""
    action = verdict["action"]
    excluded = _excluded(verdict, run, blame)
    if action["advice"] not in RESTARTS:
        return Plan(False, excluded, f"advice is '{action['advice']}': a restart would not help")
    if run.restarts >= most_requeues:
        return Plan(False, excluded, f"requeued {run.restarts} times already (--max-requeues)")
    return Plan(True, excluded, f"advice is '{action['advice']}'")


def _excluded(verdict: Mapping[str, Any], run: Run, blame: str) -> tuple[str, ...]:
    """The job's own nodes that are to blame; none when that would be all of several."""
    named = set(verdict["action"]["exclude_nodes"]) if blame != "none" else set()
    if blame == "culprits":
        named.update(culprit["node"] for culprit in verdict["culprits"])
    short = {name.partition(".")[0] for name in named}
    found = tuple(node for node in run.nodes if node.partition(".")[0] in short)
    return () if len(found) == len(run.nodes) > 1 else found


def is_of_this_run(verdict: Mapping[str, Any], run: Run) -> bool:
    """Right after a requeue the newest verdict is still about the run that was stopped."""
    return bool(verdict["attempt"] > run.restarts)


def this_run(environ: Mapping[str, str]) -> Run:
    number = environ.get("SLURM_JOB_ID", "")
    if not number:
        _fail("this is no Slurm job: SLURM_JOB_ID is not set; start it in a job script")
    nodes = command("scontrol", "show", "hostnames", environ.get("SLURM_JOB_NODELIST", ""))
    restarts = environ.get("SLURM_RESTART_COUNT", "")
    return Run(number, int(restarts) if restarts.isdigit() else 0, tuple(nodes.split()))


def command(*words: str) -> str:
    """Output of a command; raise OSError or subprocess.SubprocessError when it fails."""
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=True,
        start_new_session=True,  # not hit by a signal that the job script's group gets
    )
    return done.stdout


def check(job: str) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of `hangwatch check`; an empty answer where it could not say."""
    words = ["hangwatch", "check", job, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        say_once(done.stderr.strip() or f"`hangwatch check {job}` said nothing")
        return done.returncode, {}


def is_current(run: Run) -> bool:
    """Whether Slurm still runs this very run: nobody has requeued or cancelled it meanwhile."""
    shown = dict(
        word.split("=", 1)
        for word in command("scontrol", "show", "--oneliner", "job", run.number).split()
        if "=" in word
    )
    return shown.get("JobState") == "RUNNING" and shown.get("Restarts") == str(run.restarts)


def excluded_already(run: Run) -> list[str]:
    shown = command("scontrol", "show", "--oneliner", "job", run.number)
    found = re.search(r"\bExcNodeList=(\S+)", shown)
    if found is None or found[1] == "(null)":
        return []
    return command("scontrol", "show", "hostnames", found[1]).split()


def requeue(run: Run, exclude: Sequence[str]) -> None:
    """Put the job back without these nodes.

    Slurm takes a list of excluded nodes for pending jobs only, and a requeue ends this program. So
    the job is held in the queue until the list is written: whatever happens between, it does not
    start on the bad node again.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Slurm's, before SIGKILL after KillWait
    before = excluded_already(run)
    command("scontrol", "requeuehold", run.number)
    wanted = [*before, *(node for node in exclude if node not in before)]
    if wanted != before:
        insist("scontrol", "update", f"JobId={run.number}", f"ExcNodeList={','.join(wanted)}")
    insist("scontrol", "release", run.number)


def insist(*words: str) -> None:
    """Run a command until it works, while Slurm lets us live: without it the job stays held."""
    for _ in range(TRIES):
        try:
            command(*words)
            return
        except (OSError, subprocess.SubprocessError) as error:
            say_once(f"{' '.join(words)}: {error}")
            time.sleep(1)
    _fail(f"the job stays held; do by hand: {' '.join(words)}")


def act(job: str, verdict: Mapping[str, Any], run: Run, found: Plan, hold_s: int) -> bool:
    """Store the evidence, then requeue; whether this run is over."""
    held = subprocess.run(
        ["hangwatch", "hold", job, "--timeout", f"{hold_s}s"],
        timeout=hold_s + COMMAND_S,
        check=False,
    )
    if held.returncode != 0:
        say("the evidence may not be complete: `hangwatch hold` did not say that it is stored")
    if not is_current(run):
        say(f"job {run.number} is not in this run any more: nothing to do")
        return True
    without = f" without {', '.join(found.exclude)}" if found.exclude else ""
    say(f"requeueing job {run.number}{without}; incident {verdict['incident'] or 'none'}")
    requeue(run, found.exclude)
    return True


def advice(found: Plan, *, has_leave: bool) -> str:
    """The one line that says what is going to be done, or why nothing is."""
    without = f" without {', '.join(found.exclude)}" if found.exclude else ""
    if not found.is_restart:
        return f"not requeued: {found.why}"
    if not has_leave:
        return f"would requeue{without}, as {found.why}: give --requeue to let it"
    return f"will requeue{without}, as {found.why}"


class Watch:
    """What is remembered between two questions."""

    def __init__(self, options: argparse.Namespace, run: Run) -> None:
        self._options, self._run = options, run
        self._failed_since_s: float | None = None
        self._told: str | None = ""  # the incident that was told of last; None has no record yet

    def look(self, now_s: float) -> bool:
        """Ask once and act on the answer; whether this run is over."""
        code, job = check(self._options.job)
        verdict = job.get("verdict")
        if code != HUNG or verdict is None or not is_of_this_run(verdict, self._run):
            self._failed_since_s = None
            return False
        if verdict["state"] == "failed" and not self._has_failed_for_long(now_s):
            return False
        found = plan(
            verdict, self._run, self._options.exclude, self._options.max_requeues
        )
        if verdict["incident"] != self._told:
            self._told = verdict["incident"]
            say(f"{verdict['state']}: {verdict['summary']}")
            say(advice(found, has_leave=self._options.requeue))
        if not (self._options.requeue and found.is_restart):
            return False
        return act(self._options.job, verdict, self._run, found, self._options.hold)

    def _has_failed_for_long(self, now_s: float) -> bool:
        if self._failed_since_s is None:
            self._failed_since_s = now_s
        return now_s - self._failed_since_s >= FAILED_FOR_S


def options(arguments: Sequence[str], environ: Mapping[str, str]) -> argparse.Namespace:
    own = f"{environ.get('SLURM_JOB_NAME', 'job')}-{environ.get('SLURM_JOB_ID', '')}"
    parser = argparse.ArgumentParser(description="Get a hung Slurm job off its bad node.")
    parser.add_argument(
        "--job",
        default=environ.get("HANGWATCH_JOB") or own,
        help="its name in Hangwatch; default: HANGWATCH_JOB, else NAME-ID as task-prolog.sh says",
    )
    parser.add_argument("--requeue", action="store_true", help="act; without it only advice")
    parser.add_argument(
        "--exclude",
        choices=("blamed", "culprits", "none"),
        default="blamed",
        help="blamed: nodes whose own evidence is against them; culprits: all that run a culprit",
    )
    parser.add_argument("--max-requeues", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument("--every", type=float, default=10.0, metavar="S", help="default: 10")
    parser.add_argument("--hold", type=int, default=30, metavar="S", help="default: 30")
    return parser.parse_args(arguments)


_said: set[str] = set()


def say(text: str) -> None:
    print(f"hangwatch: {text}", file=sys.stderr, flush=True)


def say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        say(text)


def _fail(text: str) -> NoReturn:
    say(text)
    raise SystemExit(2)


def main() -> None:
    asked = options(sys.argv[1:], os.environ)
    try:
        watch = Watch(asked, this_run(os.environ))
    except (OSError, subprocess.SubprocessError) as error:
        _fail(f"scontrol does not answer: {error}")
    while True:
        try:
            if watch.look(time.monotonic()):
                return
        except (OSError, subprocess.SubprocessError) as error:
            # A controller or server that is away for a while: the job goes on, and so does this.
            say_once(str(error))
        time.sleep(asked.every)


if __name__ == "__main__":
    main()
