"""Commands that a reader may copy from an incident page. Hangwatch runs none of them itself."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from hangwatch_server.model import Incident
from hangwatch_server.pages import words

MAX_CULPRITS = 2  # more of the same command helps nobody
_REASON_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    what: str
    text: str


def of_incident(incident: Incident, base_url: str) -> tuple[Command, ...]:
    """Look closer first, then fetch the record, then what the site's scheduler understands."""
    found = [_stacks(incident)] if incident.culprit_ranks else []
    for culprit in incident.verdict.culprits[:MAX_CULPRITS]:
        if culprit.pid is not None:
            found.append(
                Command(
                    what=f"On {culprit.node}: every thread of rank {culprit.rank}",
                    text=f"py-spy dump --pid {culprit.pid}",
                )
            )
    found.append(
        Command(
            what="The verdict, for scripts",
            text=(
                'curl -H "Authorization: Bearer $HANGWATCH_TOKEN" '
                f"{base_url}api/v1/jobs/{incident.job}/verdict"
            ),
        )
    )
    for node in incident.verdict.action.exclude_nodes:
        found.extend(_exclusions(incident, node))
    return tuple(found)


def _stacks(incident: Incident) -> Command:
    return Command(
        what="Fresh stacks of the culprits",
        text=f"hangwatch stacks {incident.job} --ranks {shlex.quote(incident.culprit_ranks)}",
    )


def _exclusions(incident: Incident, node: str) -> tuple[Command, Command]:
    cause = words.short(words.plain(incident.summary).replace("\n", " "), _REASON_CHARS)
    reason = shlex.quote(f"hangwatch: {incident.id} {cause}")
    return (
        Command(
            what="Slurm: keep new jobs off the node",
            text=f"scontrol update NodeName={shlex.quote(node)} State=DRAIN Reason={reason}",
        ),
        Command(
            what="Kubernetes: keep new pods off the node",
            text=f"kubectl cordon {shlex.quote(node)}",
        ),
    )
