"""How topics, matchers and the state of a delivery read to people, each with its mark."""

from __future__ import annotations

from collections.abc import Sequence

from hangwatch_server.model.alerts import DeliveryState, Matcher, MatchField, Repeat, Topic

TOPICS = {
    Topic.OPENED: "hang",
    Topic.REMINDER: "reminder",
    Topic.ACKNOWLEDGED: "acknowledged",
    Topic.RESOLVED: "resolved",
    Topic.SLOW: "slow job",
    Topic.BLIND: "blind",
    Topic.SIGHTED: "sees again",
    Topic.TEST: "test",
}
MEANINGS = {
    Topic.OPENED: "a hang is confirmed, and has stood for a moment",
    Topic.REMINDER: "it still stands, and nobody has acknowledged it",
    Topic.ACKNOWLEDGED: "somebody looks after it",
    Topic.RESOLVED: "it is over: how long it lasted, and what it was",
    Topic.SLOW: "a rank slows its job down, and nothing hangs",
    Topic.BLIND: "Hangwatch itself sees too little to judge",
    Topic.SIGHTED: "Hangwatch sees enough again",
}
STATES = {
    DeliveryState.PENDING: "waiting",
    DeliveryState.SENT: "sent",
    DeliveryState.SILENCED: "held back",
    DeliveryState.FAILED: "failed",
}
MARKS = {
    DeliveryState.PENDING: "starting",
    DeliveryState.SENT: "finished",
    DeliveryState.SILENCED: "expected_wait",
    DeliveryState.FAILED: "failed",
}
FIELDS = {
    MatchField.JOB: "job",
    MatchField.NODE: "node of a culprit",
    MatchField.KIND: "kind of hang",
    MatchField.CONDITION: "what a culprit does",
}
REPEATS = {Repeat.ONCE: "once", Repeat.DAILY: "every day", Repeat.WEEKLY: "every week"}


def topic(value: Topic, number: int = 0) -> str:
    """`reminder 2`: with its number where there are several."""
    return f"{TOPICS[value]} {number}" if number else TOPICS[value]


def matchers(found: Sequence[Matcher]) -> str:
    """`job gpt-*, node node-b`, "" for none."""
    return ", ".join(f"{matcher.field} {matcher.pattern}" for matcher in found)
