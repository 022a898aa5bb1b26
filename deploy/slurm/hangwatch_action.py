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


def slurm_job(incident: dict[str, Any]) -> tuple[str, list[str]]:
    """Number and nodes of the job that Slurm runs under this incident's name.

    A name is its job's own word: who gives theirs another job's name must at least hang on one of
    that job's nodes to have it requeued.
    """
    name, _, number = incident["job_name"].rpartition("-")
    if not number.isascii() or not number.isdigit():
        slurm.fail(
            f"'{incident['job_name'][:80]}' does not end in a Slurm job's number: nothing done"
        )
    shown = slurm.job(number)
    if shown.get("JobName") != name or shown.get("JobState") != "RUNNING":
        slurm.fail(f"Slurm runs no job {number} named '{name[:80]}': nothing done")
    nodes = slurm.hosts(shown.get("NodeList", ""))
    if not slurm.own_nodes(set(incident["culprit_nodes"]), nodes):
        slurm.fail(f"no culprit runs on a node of job {number}: nothing done")
    return number, nodes


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
    number, nodes = slurm_job(incident)
    blamed = slurm.blamed(set(action["exclude_nodes"]), nodes)
    for name in blamed:
        if not asked.drain:
            print(f"would drain {name}")
        elif slurm.drain(name, reason(incident, document["url"])):
            print(f"drained {name}")
        else:
            print(f"{name} is drained already")
    if action["advice"] not in RESTARTS:
        print(f"advice is {action['advice']}: job {number} is left as it is")
    elif asked.requeue:
        slurm.requeue(number, blamed)
        print(f"requeued job {number} without {', '.join(blamed) or 'exclusion'}")
    else:
        print(f"would requeue job {number}")


if __name__ == "__main__":
    try:
        main()
    except slurm.Failure as error:
        slurm.fail(f"scontrol: {getattr(error, 'stderr', '') or error}")
