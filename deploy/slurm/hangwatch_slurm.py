"""What Slurm is asked and told by the programs beside this file, through `scontrol` alone.

Nothing here decides anything. Python 3.9, standard library.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

COMMAND_S = 60.0
TRIES = 10
Failure = (OSError, subprocess.SubprocessError)


def command(*words: str) -> str:
    """Output of a command; raise one of `Failure` when it fails."""
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=True,
        start_new_session=True,  # not hit by a signal that the job script's group gets
    )
    return done.stdout


def job(number: str) -> dict[str, str]:
    """The words of `scontrol show job`: JobState, Restarts, NodeList, ExcNodeList, …"""
    return _pairs(command("scontrol", "show", "--oneliner", "job", number))


def node(name: str) -> dict[str, str]:
    return _pairs(command("scontrol", "show", "--oneliner", "node", name))


def hosts(text: str) -> list[str]:
    """A list such as n[1-3] as names; Slurm writes "(null)" for none."""
    if text in ("", "(null)"):
        return []
    return command("scontrol", "show", "hostnames", text).split()


def requeue(number: str, exclude: Sequence[str]) -> None:
    """Put a running job back into the queue without these nodes, beside those it shuns already.

    Slurm takes a list of excluded nodes for pending jobs only, and kills whoever requeues from
    inside the job soon after. So the job is held in the queue until the list is written: whatever
    happens between, it does not start on the bad node again.
    """
    before = hosts(job(number).get("ExcNodeList", ""))
    command("scontrol", "requeuehold", number)
    wanted = [*before, *(name for name in exclude if name not in before)]
    if wanted != before:
        _insist("scontrol", "update", f"JobId={number}", f"ExcNodeList={','.join(wanted)}")
    _insist("scontrol", "release", number)


def drain(name: str, reason: str) -> bool:
    """Let a node take no new job; False where it is drained already, for a reason of its own."""
    if "DRAIN" in node(name).get("State", ""):
        return False
    command("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}")
    return True


def own_nodes(named: set[str], nodes: Sequence[str]) -> tuple[str, ...]:
    """Those of a job's nodes that are named, whether or not with their domain."""
    short = {name.partition(".")[0] for name in named}
    return tuple(name for name in nodes if name.partition(".")[0] in short)


def blamed(named: set[str], nodes: Sequence[str]) -> tuple[str, ...]:
    """The same, but none when it is all of several: what befalls every node is no node's fault."""
    found = own_nodes(named, nodes)
    return () if len(found) == len(nodes) > 1 else found


def say(text: str) -> None:
    print(f"hangwatch: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    say(text)
    raise SystemExit(2)


def _insist(*words: str) -> None:
    """Run a command until it works, while Slurm lets us live: without it the job stays held."""
    for _ in range(TRIES):
        try:
            command(*words)
            return
        except Failure as error:
            say(f"{' '.join(words)}: {error}; tried again")
            time.sleep(1)
    fail(f"the job stays held; do by hand: {' '.join(words)}")


def _pairs(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)
