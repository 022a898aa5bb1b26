"""Compares a verdict with what a case expects. Pure."""

from __future__ import annotations

from typing import Any

from hangwatch_server.demo.cases import Case
from hangwatch_server.model import State

# A verdict as the REST contract gives it; its shape is fixed there.
VerdictDocument = dict[str, Any]


def is_named(case: Case, verdict: VerdictDocument) -> bool:
    """Whether people could already read the right kind and the right culprits."""
    return (
        verdict["state"] in (State.SUSPECTED, State.HUNG, case.state)
        and verdict["kind"] == case.kind
        and verdict["culprit_ranks"] == case.culprits
    )


def differences(case: Case, verdict: VerdictDocument) -> list[str]:
    """What is not as expected, in words; empty when the verdict is right."""
    found = _of_job(case, verdict) + _of_culprits(case, verdict)
    if case.hint and not any(case.hint in hint for hint in verdict["hints"]):
        found.append(f"no hint says {case.hint!r}: {verdict['hints']}")
    told = [verdict["summary"], *(item["text"] for item in verdict["evidence"])]
    for words in case.says:
        if not any(words in text for text in told):
            found.append(f"neither summary nor evidence says {words!r}: {told}")
    return found


def of_incidents(case: Case, count: int) -> list[str]:
    """The same of the number of incidents that people are shown of the job."""
    if count == case.expected_incidents:
        return []
    return [f"incidents are {count}, expected {case.expected_incidents}"]


def _of_job(case: Case, verdict: VerdictDocument) -> list[str]:
    found = [
        f"{name} is {verdict[name]!r}, expected {str(expected)!r}"
        for name, expected in (
            ("state", case.state),
            ("kind", case.kind),
            ("culprit_ranks", case.culprits),
        )
        if verdict[name] != expected
    ]
    if case.seq is not None and verdict["seq"] != case.seq:
        found.append(f"seq is {verdict['seq']}, expected {case.seq}")
    return found


def _of_culprits(case: Case, verdict: VerdictDocument) -> list[str]:
    found = []
    culprits = verdict["culprits"]
    if case.condition is not None:
        found += [
            f"rank {culprit['rank']} is {culprit['condition']}, expected {case.condition}"
            for culprit in culprits
            if culprit["condition"] != case.condition
        ]
    if case.where:
        found += [
            f"rank {culprit['rank']} is at {culprit['where']!r}, expected in {case.where}"
            for culprit in culprits
            if case.where not in culprit["where"] + culprit["detail"]
        ]
    return found
