"""Keeps a server that has just started from ending an incident that it only does not see yet."""

from __future__ import annotations

import dataclasses

from hangwatch_server import diagnose
from hangwatch_server.detect import Decision
from hangwatch_server.model import State
from hangwatch_server.watch.watched import Watched

# Agents reconnect with jitter; this long of full, healthy reports is progress, not a gap in sight.
STEADY_S = 5.0
_WAITING = "Waiting for the agents to report after a restart of the server."


def apply(watched: Watched, decision: Decision, now_s: float) -> Decision:
    """`unknown` in place of a calm decision while an inherited incident has not been seen again."""
    if watched.inherited is None:
        return decision
    if watched.inherited.attempt != watched.snapshot.attempt:
        watched.inherited = None
        return decision
    if decision.state in (State.SUSPECTED, State.HUNG, State.FAILED):
        watched.inherited = None
        return decision
    coverage = diagnose.coverage(watched.snapshot)
    if decision.state is State.UNKNOWN or coverage.reporting < coverage.world_size:
        watched.steady_since_s = None
    elif watched.steady_since_s is None:
        watched.steady_since_s = now_s
    elif now_s - watched.steady_since_s >= STEADY_S:
        watched.inherited = None
        return decision
    return dataclasses.replace(decision, state=State.UNKNOWN, reason=_WAITING)
