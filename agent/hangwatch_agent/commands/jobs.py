"""`status`, `check` and `stacks`: what the server knows of jobs."""

from __future__ import annotations

import argparse

from hangwatch_agent import client
from hangwatch_agent.client import ClientError
from hangwatch_agent.commands import connection, output
from hangwatch_agent.commands.flags import Commands

FINE, HUNG, UNKNOWN = 0, 1, 2
# The table of states and exit codes that schedulers rely on (docs, "check").
EXIT_CODES = {
    "starting": FINE,
    "healthy": FINE,
    "finished": FINE,
    "expected_wait": FINE,
    "slow": FINE,
    "suspected": FINE,
    "hung": HUNG,
    "failed": HUNG,
    "unknown": UNKNOWN,
}
CAPTURE_TIMEOUT_S = 60.0
_JOB_HELP = "name or id of the job; a name gives its newest run"


def add(commands: Commands) -> None:
    status = commands.add_parser("status", help="list jobs, or say how one of them is")
    status.add_argument("job", nargs="?", help=_JOB_HELP)
    status.set_defaults(handler=_status)
    check = commands.add_parser(
        "check",
        help="exit 0 when a job is fine, 1 when it is hung or failed, 2 when that is unknown",
    )
    check.add_argument("job", help=_JOB_HELP)
    check.set_defaults(handler=_check)
    stacks = commands.add_parser("stacks", help="take the stacks of a job's ranks and print them")
    stacks.add_argument("job", help=_JOB_HELP)
    stacks.add_argument("--ranks", help="such as 0-3,7; default: all")
    stacks.add_argument("--native", action="store_true", help="with C and C++ frames; slower")
    stacks.set_defaults(handler=_stacks)
    for parser in (status, check, stacks):
        connection.add(parser)


def _status(arguments: argparse.Namespace) -> int:
    server = connection.connect(arguments)
    if arguments.job:
        job = server.job(arguments.job)
        if arguments.json:
            output.json(job.raw)
        else:
            output.text("\n".join(output.verdict(job.value.verdict)))
        return FINE
    jobs = server.jobs()
    if arguments.json:
        output.json(jobs.raw)
    elif jobs.value.items:
        headings = ("NAME", "JOB", "STATE", "RANKS", "ATTEMPT", "SUMMARY")
        output.table(headings, [output.job_row(job) for job in jobs.value.items])
        if jobs.value.next:
            output.note(f"older jobs are not shown: see {server.server}/")
    else:
        output.note(
            f"no job yet on {server.server}: start an agent with `hangwatch agent`, then a job "
            "with `hangwatch run -- torchrun train.py`"
        )
    return FINE


def _check(arguments: argparse.Namespace) -> int:
    job = connection.connect(arguments).job(arguments.job)
    verdict = job.value.verdict
    if arguments.json:
        output.json(job.raw)
    else:
        output.text(f"{job.value.state}: {verdict.summary}".removesuffix(": "))
    return EXIT_CODES.get(job.value.state, UNKNOWN)


def _stacks(arguments: argparse.Namespace) -> int:
    server = connection.connect(arguments)
    job = server.job(arguments.job).value
    asked = server.request_capture(job.id, arguments.ranks, arguments.native).value
    capture = server.finished_capture(asked.id, CAPTURE_TIMEOUT_S).value
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
