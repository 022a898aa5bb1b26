"""`status`, `check`, `hold` and `stacks`: what the server knows of jobs."""

from __future__ import annotations

import argparse
import re

from hangwatch_agent import client
from hangwatch_agent.client import FINE, HUNG, ClientError
from hangwatch_agent.commands import connection, output
from hangwatch_agent.commands.flags import Commands

CAPTURE_TIMEOUT_S = 60.0
LONGEST_HOLD_S = 120.0  # what the server allows
_JOB_HELP = "name or id of the job; a name gives its newest run"
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add(commands: Commands) -> None:
    status = commands.add_parser("status", help="list jobs, or say how one of them is")
    status.add_argument("job", nargs="?", help=_JOB_HELP)
    status.set_defaults(handler=_status)
    check = commands.add_parser(
        "check",
        help="exit 0 when a job is fine, 1 when it is hung or failed, 2 when that is unknown",
    )
    check.add_argument("job", help=_JOB_HELP)
    check.add_argument(
        "--wait",
        type=_seconds,
        default=0.0,
        metavar="DURATION",
        help="such as 10m: exit as soon as it is hung, failed or finished, at the latest then",
    )
    check.set_defaults(handler=_check)
    hold = commands.add_parser(
        "hold",
        help="before a job is torn down: wait until the evidence of its hang is stored",
    )
    hold.add_argument("job", help=_JOB_HELP)
    hold.add_argument(
        "--timeout",
        type=_seconds,
        default=30.0,
        metavar="DURATION",
        help="at most 2m; default: 30s",
    )
    hold.set_defaults(handler=_hold)
    stacks = commands.add_parser("stacks", help="take the stacks of a job's ranks and print them")
    stacks.add_argument("job", help=_JOB_HELP)
    stacks.add_argument("--ranks", help="such as 0-3,7; default: all")
    stacks.add_argument("--native", action="store_true", help="with C and C++ frames; slower")
    stacks.set_defaults(handler=_stacks)
    for parser in (status, check, hold, stacks):
        connection.add(parser)


def _status(arguments: argparse.Namespace) -> int:
    server = connection.connect(arguments)
    if arguments.job:
        job = server.job(arguments.job)
        if arguments.json:
            output.json(job.raw)
        else:
            output.text("\n".join(output.verdict(job.verdict)))
        return FINE
    jobs = server.jobs_page()
    if arguments.json:
        output.json(jobs.raw)
    elif jobs.items:
        headings = ("NAME", "JOB", "STATE", "RANKS", "ATTEMPT", "SUMMARY")
        output.table(headings, [output.job_row(job) for job in jobs.items])
        if jobs.next:
            output.note(f"older jobs are not shown: see {server.server}/")
    else:
        output.note(
            f"no job yet on {server.server}: start an agent with `hangwatch agent`, then a job "
            "with `hangwatch run -- torchrun train.py`"
        )
    return FINE


def _check(arguments: argparse.Namespace) -> int:
    job = connection.connect(arguments).check(arguments.job, wait_s=arguments.wait)
    if arguments.json:
        output.json(job.raw)
    else:
        output.text(f"{job.state}: {job.verdict.summary}".removesuffix(": "))
    return job.verdict.exit_code


def _hold(arguments: argparse.Namespace) -> int:
    if arguments.timeout > LONGEST_HOLD_S:
        raise ClientError("a hold lasts 2m at most: evidence that takes longer does not come")
    server = connection.connect(arguments)
    job = server.job(arguments.job)
    held = server.hold(job.id, timeout_s=arguments.timeout)
    if arguments.json:
        output.json(held.raw)
    else:
        output.text(_held(held))
    return HUNG if _is_lacking(held) else FINE


def _is_lacking(held: client.Hold) -> bool:
    """Whether tearing the job down now would lose what tells why it hangs."""
    has_hang = held.state in ("suspected", "hung") or held.incident is not None
    return has_hang and not held.evidence_stored


def _held(held: client.Hold) -> str:
    if held.evidence_stored:
        where = f" in incident {held.incident}" if held.incident else ""
        return f"{held.state}: the evidence is stored{where}"
    if _is_lacking(held):
        return f"{held.state}: the time is up, and the evidence is not stored"
    return f"{held.state}: nothing to wait for"


def _stacks(arguments: argparse.Namespace) -> int:
    server = connection.connect(arguments)
    job = server.job(arguments.job)
    asked = server.request_capture(job.id, arguments.ranks, arguments.native)
    capture = server.finished_capture(asked.id, CAPTURE_TIMEOUT_S)
    if arguments.json:
        output.json(server.capture_tree(capture.id, arguments.native))
    else:
        output.text(server.capture_text(capture.id, arguments.native).rstrip("\n"))
    _tell_missing(capture)
    if not any(part.has_stacks for part in capture.parts):
        raise ClientError(
            f"no rank of {job.name} gave a stack (capture {capture.id}): the reasons are above; "
            "see `hangwatch status` for which ranks report"
        )
    return FINE


def _tell_missing(capture: client.Capture) -> None:
    for part in capture.parts:
        if not part.has_stacks:
            remedy = f"; {part.remedy}" if part.remedy else ""
            reason = part.reason or "no stack came"
            output.note(f"rank {part.rank} on {part.node or 'no node'}: {reason}{remedy}")


def _seconds(text: str) -> float:
    """Text as 500ms, 30s, 2m, 1h as seconds; bare numbers are seconds. As the API reads it."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is no duration: write it as 30s, 2m or 1h")
    return float(match.group(1)) * _UNITS[match.group(2) or "s"]
