"""What Slurm is asked and told by the programs beside this file, through `scontrol` alone.

Nothing here decides anything. Python 3.9, standard library.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

COMMAND_S = 60.0
UPDATE_TRIES = 30
RELEASE_TRIES = 600  # a controller that is away for ten minutes finds no job held by us afterwards
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

    Slurm takes a list of excluded nodes for pending jobs only, so the job is held in the queue
    until the list is written: whatever happens between, it does not start on the bad node again.
    Who asks may be killed at any moment, from inside the job soon after the requeue and by a server
    that stops. So a process of its own session does it, and ends when the job is released.
    """
    before = hosts(job(number).get("ExcNodeList", ""))
    wanted = [*before, *(name for name in exclude if name not in before)]
    if wanted == before:
        command("scontrol", "requeue", number)
        return
    keeper = [sys.executable, __file__, number, ",".join(wanted)]
    subprocess.run(keeper, stdin=subprocess.DEVNULL, check=True, start_new_session=True)


def hold_and_release(number: str, exclude: str) -> None:
    """Requeue a job as held, write what it shuns, and release it whatever became of that."""
    try:
        command("scontrol", "requeuehold", number)
    except subprocess.CalledProcessError as error:
        fail(f"job {number} is not requeued: {error.stderr.strip() or error}")
    except Failure as error:  # without an answer it may be held all the same
        say(f"scontrol requeuehold {number}: {error}")
    update = ("scontrol", "update", f"JobId={number}", f"ExcNodeList={exclude}")
    is_told = False
    try:
        is_told = _insist(update, UPDATE_TRIES)
    finally:
        is_free = _insist(("scontrol", "release", number), RELEASE_TRIES)
    if not is_free:
        fail(f"job {number} stays held; do by hand: scontrol release {number}")
    if not is_told:
        fail(f"job {number} is requeued, but may start on {exclude} again: Slurm took no list")


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
    with contextlib.suppress(OSError):  # nobody reads it any more: what is under way goes on
        print(f"hangwatch: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    say(text)
    raise SystemExit(2)


def _insist(words: Sequence[str], tries: int) -> bool:
    """Run a command until it works; False where it never did."""
    for _ in range(tries):
        try:
            command(*words)
            return True
        except Failure as error:
            say(f"{' '.join(words)}: {getattr(error, 'stderr', '') or error}; tried again")
            time.sleep(1)
    return False


def _pairs(line: str) -> dict[str, str]:
    """Its words by name. The user's own come in too, and must not pass for Slurm's.

    A job's name comes early and may have blanks and signs of equality; comments come last, so of a
    word that stands twice the first is Slurm's.
    """
    named = re.search(r" JobName=(.*?) (?=UserId=[^ =]+\(\d+\) GroupId=)", line)
    rest = line[: named.start()] + " " + line[named.end() :] if named else line
    found = {"JobName": named[1]} if named else {}
    for word in rest.split():
        key, is_pair, value = word.partition("=")
        if is_pair:
            found.setdefault(key, value)
    return found


if __name__ == "__main__":
    # What ends the asker must not end this: the job would stay held.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    hold_and_release(sys.argv[1], sys.argv[2])
