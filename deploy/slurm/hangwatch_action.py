#!/usr/bin/env python3
"""The server's action on a Slurm cluster: drains the nodes to blame, requeues the job without them.

    hangwatch serve --action-command '/etc/hangwatch/hangwatch_action.py --drain --requeue'

Runs where the server runs, as a user whom Slurm lets do both (SlurmUser, or an operator). Reads the
incident from stdin. Without flags it prints what it would do. The job is known by its name, NAME-ID
as task-prolog.sh gives it, and believed only where Slurm has a running job of that name and number.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import hangwatch_slurm as slurm

RESTARTS = ("restart", "restart_excluding")
REASON_CHARS = 120


def running_job(incident: dict[str, Any]) -> str:
    """Number of the job that Slurm runs under this incident's name; "" where there is none.

    A name is its job's own word: who gives theirs another job's name must at least hang on one of
    that job's nodes to have it requeued.
    """
    name, _, number = incident["job_name"].rpartition("-")
    if not number.isascii() or not number.isdigit():
        return ""
    try:
        shown = slurm.job(number)
    except slurm.Failure:  # Slurm has forgotten it
        return ""
    if shown.get("JobName") != name or shown.get("JobState") != "RUNNING":
        return ""
    nodes = slurm.hosts(shown.get("NodeList", ""))
    return number if slurm.own_nodes(set(incident["culprit_nodes"]), nodes) else ""


def drain(incident: dict[str, Any], nodes: tuple[str, ...], url: str, *, has_leave: bool) -> None:
    for name in nodes:
        if not has_leave:
            print(f"would drain {name}")
        elif slurm.drain(name, reason(incident, url)):
            print(f"drained {name}")
        else:
            print(f"{name} is drained already")


def requeue(incident: dict[str, Any], nodes: tuple[str, ...], *, has_leave: bool) -> None:
    number = running_job(incident)
    advice = incident["verdict"]["action"]["advice"]
    without = f" without {', '.join(nodes)}" if nodes else ""
    if not number:
        print(f"Slurm runs no job that is '{incident['job_name'][:80]}': none is requeued")
    elif advice not in RESTARTS:
        print(f"advice is {advice}: job {number} is left as it is")
    elif has_leave:
        slurm.requeue(number, nodes)
        print(f"requeued job {number}{without}")
    else:
        print(f"would requeue job {number}{without}")


def reason(incident: dict[str, Any], url: str) -> str:
    """What `sinfo -R` shows; a job's words are left out, since they could say anything."""
    text = f"hangwatch: {incident['kind']} in job {incident['job_name']}, {url or incident['id']}"
    return "".join(char for char in text if char.isprintable())[:REASON_CHARS]


def main() -> None:
    parser = argparse.ArgumentParser(description="Drain and requeue on a confirmed hang.")
    parser.add_argument("--drain", action="store_true", help="drain the nodes to blame")
    parser.add_argument("--requeue", action="store_true", help="requeue the job without them")
    asked = parser.parse_args()
    document = json.load(sys.stdin)
    incident = document["incident"]
    action = incident["verdict"]["action"]
    blamed = slurm.blamed(set(action["exclude_nodes"]), document["nodes"])
    # As Slurm spells them: agents may add the domain.
    named = tuple(name.partition(".")[0] for name in blamed)
    drain(incident, named, document["url"], has_leave=asked.drain)
    requeue(incident, named, has_leave=asked.requeue)


if __name__ == "__main__":
    try:
        main()
    except slurm.Failure as error:
        slurm.fail(f"scontrol: {getattr(error, 'stderr', '') or error}")
