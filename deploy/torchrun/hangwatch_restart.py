#!/usr/bin/env python3
"""Lets torchrun restart a job that hangs. On each node, round the command that starts it there:

    python3 hangwatch_restart.py --job gpt --restart -- \\
        hangwatch run --job gpt -- torchrun --standalone --max-restarts 3 … train.py

torchrun restarts all workers when one of them ends; a hung one never does. This asks `hangwatch
check` how the job is. When it hangs, the evidence is made safe with `hangwatch hold`; then, only
with --restart, the rank to blame is killed on the node where it runs, and torchrun does the rest,
as often as --max-restarts says. Without --restart it prints what it would do.

It kills nothing but a worker of its own torchrun, known by its RANK. Exit code: the command's.
Python 3.9, standard library, and `hangwatch`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HUNG = 1  # exit code of `hangwatch check`: hung or failed
COMMAND_S = 60.0
RESTARTS = ("restart", "restart_excluding")
# torch 2.13 keeps one store over all attempts and does not tell them apart in it: new workers find
# the addresses of the old ones there, and fail or hang. Not shared, each attempt gets its own.
FRESH_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def workers(launcher: int) -> Iterator[tuple[int, int]]:
    """(rank, pid) of each worker under this process: those whose parent has no RANK of its own."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The name, in brackets, may hold anything.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    below = list(children.get(launcher, ()))
    while below:
        pid = below.pop()
        rank = rank_of(pid)
        if rank is None:
            below += children.get(pid, ())
        else:
            yield rank, pid


def rank_of(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        for item in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if item.startswith(b"RANK=") and item[5:].isdigit():
                return int(item[5:])
    return None


class Restart:
    """Asks, tells, acts; and what is remembered between two questions."""

    def __init__(self, options: argparse.Namespace, launcher: int) -> None:
        self._options, self._launcher = options, launcher
        self._acted_on = 0  # attempt
        self._told = ""

    def look(self) -> None:
        verdict = self._verdict()
        if verdict is None or verdict["attempt"] <= self._acted_on or verdict["state"] != "hung":
            return
        culprits = {culprit["rank"] for culprit in verdict["culprits"]}
        own = sorted((rank, pid) for rank, pid in workers(self._launcher) if rank in culprits)
        self.tell(verdict["incident"] or "", f"hung: {verdict['summary']}")
        if not own:
            return  # another node's affair
        if verdict["action"]["advice"] not in RESTARTS:
            self.tell(f"advice {verdict['incident']}", "not restarted: it would hang again")
        elif not self._options.restart:
            self.tell(f"advice {verdict['incident']}", f"would kill rank {own[0][0]}: --restart")
        else:
            self._acted_on = verdict["attempt"]
            self._act(*own[0])

    def tell(self, about: str, line: str) -> None:
        if about != self._told:
            self._told = about
            print(f"hangwatch: {line}", file=sys.stderr, flush=True)

    def _act(self, rank: int, pid: int) -> None:
        subprocess.run(
            ["hangwatch", "hold", "--timeout", "30s", "--", self._options.job],
            timeout=30 + COMMAND_S,
            check=False,
        )
        if rank_of(pid) == rank:
            self.tell(f"kill {pid}", f"killing rank {rank}, pid {pid}: torchrun restarts the job")
            os.kill(pid, signal.SIGKILL)

    def _verdict(self) -> dict[str, Any] | None:
        done = subprocess.run(
            ["hangwatch", "check", "--json", "--", self._options.job],
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        if done.returncode != HUNG:
            return None
        verdict: dict[str, Any] = json.loads(done.stdout)["verdict"]
        return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description="Let torchrun restart a job that hangs.")
    parser.add_argument("--job", required=True, help="its name in Hangwatch")
    parser.add_argument("--restart", action="store_true", help="act; without it only advice")
    parser.add_argument("--every", type=float, default=10.0, metavar="S", help="default: 10")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    asked = parser.parse_args()
    command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
    if not command:
        parser.error("no command given: … -- hangwatch run -- torchrun --max-restarts 3 train.py")
    launcher = subprocess.Popen(command, env={**FRESH_STORE, **os.environ})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: launcher.send_signal(got))
    watch = Restart(asked, launcher.pid)
    while True:
        try:
            code = launcher.wait(asked.every)
            return code if code >= 0 else 128 - code
        except subprocess.TimeoutExpired:
            pass
        try:
            watch.look()
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            # A server that is away for a while: the job goes on, and so does this.
            watch.tell(str(error), str(error))


if __name__ == "__main__":
    raise SystemExit(main())
