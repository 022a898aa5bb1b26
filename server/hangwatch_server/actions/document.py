"""What a command is told of an incident: a document on stdin, the main facts in its environment."""

from __future__ import annotations

import msgspec

from hangwatch_server.model import Incident, Job

# Names that `hangwatch`, called by the command, must take for no settings of its own.
VARIABLES = (
    "HANGWATCH_INCIDENT",
    "HANGWATCH_INCIDENT_URL",
    "HANGWATCH_JOB_ID",
    "HANGWATCH_JOB",
    "HANGWATCH_ATTEMPT",
    "HANGWATCH_KIND",
    "HANGWATCH_CONFIDENCE",
    "HANGWATCH_ADVICE",
    "HANGWATCH_CULPRIT_RANKS",
    "HANGWATCH_CULPRIT_NODES",
    "HANGWATCH_EXCLUDE_NODES",
)


def of(incident: Incident, job: Job, url: str) -> bytes:
    """JSON: the incident as the API gives it, its job's nodes, its page's address or ""."""
    return msgspec.json.encode({"incident": incident, "nodes": job.nodes, "url": url})


def environment(incident: Incident, url: str) -> dict[str, str]:
    """Facts for scripts that read no JSON; lists are separated by commas."""
    verdict = incident.verdict
    values = (
        incident.id,
        url,
        incident.job,
        incident.job_name,
        str(incident.attempt),
        incident.kind.value,
        f"{verdict.confidence:.2f}",
        verdict.action.advice,
        incident.culprit_ranks,
        ",".join(incident.culprit_nodes),
        ",".join(verdict.action.exclude_nodes),
    )
    # A NUL, which no environment takes, can only come from a job's name.
    return {
        name: value.replace("\0", "\ufffd") for name, value in zip(VARIABLES, values, strict=True)
    }
