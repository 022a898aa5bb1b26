"""Commands to copy from an incident page, each with what in the evidence asks for it.

Hangwatch runs none of them itself. What a job can choose is quoted for the shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from hangwatch_server.model import ACTIVE_INCIDENTS, Condition, Culprit, Incident, Kind, Moment
from hangwatch_server.pages import words

MAX_CULPRITS = 2  # more of the same command helps nobody
MAX_NODES = 4
_REASON_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    what: str
    text: str
    why: str = ""  # the evidence that asks for it; "" for those that always help


def of_incident(
    incident: Incident, base_url: str, moment: Moment | None = None
) -> tuple[Command, ...]:
    """Look closer first, then what the kind asks for, then the scheduler, then the record."""
    found: list[Command] = []
    is_active = incident.state in ACTIVE_INCIDENTS
    if incident.culprit_ranks and is_active:
        found.append(_stacks(incident))
    for culprit in incident.verdict.culprits[:MAX_CULPRITS]:
        found.extend(_of_culprit(culprit, moment, is_active=is_active))
    found.extend(_of_kind(incident))
    for node in incident.verdict.action.exclude_nodes[:MAX_NODES]:
        found.extend(_exclusions(incident, node))
    found.append(_verdict(incident, base_url))
    return tuple(dict.fromkeys(found))


def _stacks(incident: Incident) -> Command:
    return Command(
        what="Fresh stacks of the culprits",
        text=f"hangwatch stacks {incident.job} --ranks {shlex.quote(incident.culprit_ranks)}",
    )


def _of_culprit(culprit: Culprit, moment: Moment | None, *, is_active: bool) -> Iterator[Command]:
    """Of a hang that is over, nothing by its pid: it may be another process's by now."""
    pid, node = culprit.pid, culprit.node
    who = words.condition(culprit.condition)
    if pid is None:
        return
    if culprit.condition in (Condition.KILLED, Condition.EXITED):
        yield Command(
            what=f"On {node}: did the kernel end it?",
            text=f"dmesg -T | grep -iE 'out of memory|killed process {pid}'",
            why=f"rank {culprit.rank} {who}",
        )
        return
    if culprit.condition is Condition.NODE_LOST or not is_active:
        return
    native = " --native" if culprit.condition is Condition.GIL_HELD else ""
    yield Command(
        what=f"On {node}: every thread of rank {culprit.rank}",
        text=f"py-spy dump{native} --pid {pid}",
        why=f"it {who}" if native else "",
    )
    if culprit.condition is Condition.STOPPED:
        yield Command(
            what=f"On {node}: let rank {culprit.rank} go on",
            text=f"kill -CONT {pid}",
            why="it is stopped by a signal",
        )
    stuck = _sleeping(culprit, moment)
    if stuck is not None:
        yield Command(
            what=f"On {node}: where the kernel holds process {stuck}",
            text=f"sudo cat /proc/{stuck}/stack",
            why=f"process {stuck} is in uninterruptible sleep",
        )


def _sleeping(culprit: Culprit, moment: Moment | None) -> int | None:
    """The pid of the rank or of its first child that sleeps uninterruptibly."""
    facts = [one for one in moment.ranks if one.rank == culprit.rank] if moment else []
    for one in facts:
        if one.process is None:
            continue
        if one.process.state == "D":
            return one.pid
        for child in one.process.children:
            if child.state == "D":
                return child.pid
    return culprit.pid if culprit.condition is Condition.UNINTERRUPTIBLE else None


def _of_kind(incident: Incident) -> Iterator[Command]:
    kind, culprits = incident.kind, incident.verdict.culprits
    if kind is Kind.STALLED_COLLECTIVE and not culprits:
        yield Command(
            what="For the next run: let NCCL say which interface and peer it uses",
            text="export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET",
            why="every member is inside and none finishes",
        )
    if kind in (Kind.MISMATCH, Kind.DEADLOCK, Kind.UNMATCHED_P2P):
        yield Command(
            what="For the next run: let torch check every call against the other ranks",
            text="export TORCH_DISTRIBUTED_DEBUG=DETAIL",
            why=words.kind(kind),
        )
    if kind is Kind.INCOMPLETE_RENDEZVOUS:
        yield Command(
            what="On a node that waits: is the rendezvous reachable?",
            text='timeout 5 bash -c "</dev/tcp/$MASTER_ADDR/$MASTER_PORT" && echo reachable',
            why=words.kind(kind),
        )


def _exclusions(incident: Incident, node: str) -> tuple[Command, Command]:
    cause = words.short(words.plain(incident.summary).replace("\n", " "), _REASON_CHARS)
    reason = shlex.quote(f"hangwatch: {incident.id} {cause}")
    why = "the evidence points at the node"
    return (
        Command(
            what="Slurm: keep new jobs off the node",
            text=f"scontrol update NodeName={shlex.quote(node)} State=DRAIN Reason={reason}",
            why=why,
        ),
        Command(
            what="Kubernetes: keep new pods off the node",
            text=f"kubectl cordon {shlex.quote(node)}",
            why=why,
        ),
    )


def _verdict(incident: Incident, base_url: str) -> Command:
    return Command(
        what="All that is known, as one file",
        text=(
            'curl -OJ -H "Authorization: Bearer $HANGWATCH_TOKEN" '
            f"{base_url}api/v1/incidents/{incident.id}/bundle.zip"
        ),
    )
