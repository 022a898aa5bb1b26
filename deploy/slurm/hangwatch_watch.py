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
import calendar
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import hangwatch_slurm as slurm

# A failed rank takes its job down within seconds; what still stands after this stands for good.
FAILED_FOR_S = 60.0
# Longer than the server's own action waits: once requeued, a job's hang is over and not acted on.
AFTER_S = 30.0
RESTARTS = ("restart", "restart_excluding")


@dataclass(frozen=True)
class Run:
    """One run of one Slurm job: a requeue makes another run of the same job."""

    number: str
    restarts: int
    nodes: tuple[str, ...]
    begun_at: str = ""  # local time as Slurm and `localtime` write it, in order as text


@dataclass(frozen=True)
class Plan:
    """What is to be done about a verdict, and why."""

    is_restart: bool
    exclude: tuple[str, ...]
    why: str

    @property
    def without(self) -> str:
        return f" without {', '.join(self.exclude)}" if self.exclude else ""


def plan(verdict: Mapping[str, Any], run: Run, exclude: str, most_requeues: int) -> Plan:
    """The restart that a verdict of a hung or failed job asks for, if it asks for one."""
    action = verdict["action"]
    named = set(action["exclude_nodes"]) if exclude != "none" else set()
    if exclude == "culprits":
        named |= {culprit["node"] for culprit in verdict["culprits"] if culprit["node"]}
    excluded = slurm.blamed(named, run.nodes)
    if action["advice"] not in RESTARTS:
        return Plan(False, excluded, f"advice is {action['advice']}: a restart would not help")
    if run.restarts >= most_requeues:
        return Plan(False, excluded, f"requeued {run.restarts} times already (--max-requeues)")
    return Plan(True, excluded, f"advice is {action['advice']}")


def advice(found: Plan, *, has_leave: bool) -> str:
    """The line that says what is going to be done, or why nothing is."""
    if not found.is_restart:
        return f"not requeued: {found.why}"
    if not has_leave:
        return f"would requeue{found.without}: {found.why}; give --requeue to let it"
    return f"requeues{found.without}: {found.why}"


def localtime(text: str) -> str:
    """A time of the API, in UTC, as Slurm writes it."""
    at_s = calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at_s))


def is_bad(verdict: Mapping[str, Any]) -> bool:
    return verdict["state"] in ("hung", "failed")


def this_run(environ: Mapping[str, str]) -> Run:
    number = environ.get("SLURM_JOB_ID", "")
    if not number:
        slurm.fail("this is no Slurm job: SLURM_JOB_ID is not set; start it in a job script")
    restarts = environ.get("SLURM_RESTART_COUNT", "")
    nodes = slurm.hosts(environ.get("SLURM_JOB_NODELIST", ""))
    begun_at = slurm.job(number).get("StartTime", "")
    return Run(number, int(restarts) if restarts.isdigit() else 0, tuple(nodes), begun_at)


def is_current(run: Run) -> bool:
    """Whether Slurm still runs this very run: nobody has requeued or cancelled it meanwhile."""
    shown = slurm.job(run.number)
    return shown.get("JobState") == "RUNNING" and shown.get("Restarts") == str(run.restarts)


class Watch:
    """Asks, tells, acts; and what is remembered between two questions."""

    def __init__(self, options: argparse.Namespace, run: Run) -> None:
        self._options, self._run = options, run
        self._told = ""  # incident, or trouble, that was told of last
        self._since_s: float | None = None  # hung, or failed, without a break
        self._attempt_before = 0  # the newest attempt of the runs before this one

    def look(self, now_s: float) -> bool:
        """Ask once and act on the answer; whether there is nothing left to watch."""
        verdict = self._verdict()
        if verdict is None or not self.is_of_this_run(verdict) or not is_bad(verdict):
            self._since_s = None
            return False
        if self._since_s is None:
            self._since_s = now_s
        found = plan(verdict, self._run, self._options.exclude, self._options.max_requeues)
        may_act = found.is_restart and self._options.requeue
        self.tell(
            verdict["incident"] or "a failure without incident",
            f"{verdict['state']}: {verdict['summary']}",
            advice(found, has_leave=self._options.requeue),
        )
        needed_s = FAILED_FOR_S if verdict["state"] == "failed" else self._options.after
        return may_act and now_s - self._since_s >= needed_s and self._act(found)

    def is_of_this_run(self, verdict: Mapping[str, Any]) -> bool:
        """Right after a requeue the newest verdict is still about the run that was stopped.

        A run may have had several attempts, as torchrun restarts its workers, or none. What was so
        before this run began tells which attempt is the other's, whatever is found out of it later.
        """
        if self._run.restarts and localtime(verdict["since"]) < self._run.begun_at:
            self._attempt_before = max(self._attempt_before, verdict["attempt"])
        return bool(verdict["attempt"] > self._attempt_before)

    def tell(self, about: str, *lines: str) -> None:
        """Say it once, until something else is said."""
        if about != self._told:
            self._told = about
            for line in lines:
                slurm.say(line)

    def _verdict(self) -> dict[str, Any] | None:
        """The newest; None while there is none, or no server that says it."""
        done = subprocess.run(
            ["hangwatch", "check", "--json", "--", self._options.job],
            capture_output=True,
            text=True,
            timeout=slurm.COMMAND_S,
            check=False,
        )
        if not done.stdout.strip():
            if done.stderr:
                self.tell(done.stderr, done.stderr.strip().removeprefix("hangwatch: "))
            return None
        verdict: dict[str, Any] = json.loads(done.stdout)["verdict"]
        return verdict

    def _act(self, found: Plan) -> bool:
        hold_s = self._options.hold
        held = subprocess.run(
            ["hangwatch", "hold", "--timeout", f"{hold_s}s", "--", self._options.job],
            timeout=hold_s + slurm.COMMAND_S,
            check=False,
        )
        if held.returncode != 0:
            slurm.say("the evidence may be incomplete: `hangwatch hold` does not call it stored")
        if not is_current(self._run):
            slurm.say(f"job {self._run.number} is not in this run any more: nothing to do")
            return True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Slurm's, before SIGKILL after KillWait
        slurm.requeue(self._run.number, found.exclude)
        return True


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
    parser.add_argument(
        "--after",
        type=float,
        default=AFTER_S,
        metavar="S",
        help="seconds that a hang must stand; default: 30",
    )
    parser.add_argument("--every", type=float, default=10.0, metavar="S", help="default: 10")
    parser.add_argument("--hold", type=int, default=30, metavar="S", help="default: 30")
    return parser.parse_args(arguments)


def main() -> None:
    asked = options(sys.argv[1:], os.environ)
    try:
        watch = Watch(asked, this_run(os.environ))
    except slurm.Failure as error:
        slurm.fail(f"scontrol does not answer: {error}")
    script = os.getppid()
    while os.getppid() == script:  # Slurm need not end what a job script has left behind
        try:
            if watch.look(time.monotonic()):
                return
        except (*slurm.Failure, ValueError) as error:
            # A controller or server that is away for a while: the job goes on, and so does this.
            watch.tell(str(error), str(error))
        time.sleep(asked.every)


if __name__ == "__main__":
    main()
