"""Keeps a server from deciding by what it does not see.

One that has just started must not end an incident that it does not see yet; one that does not hear
another server knows nothing of the ranks there.
"""

from __future__ import annotations

import dataclasses

from hangwatch_server import detect, diagnose, ranges
from hangwatch_server.detect import Decision
from hangwatch_server.model import Link, State
from hangwatch_server.watch.watched import Watched

# Agents reconnect with jitter; this long of full, healthy reports is progress, not a gap in sight.
STEADY_S = 5.0
_SLACK_S = 2.0  # between the clocks of two servers
_TROUBLE = (State.SUSPECTED, State.HUNG, State.FAILED)
_WAITING = "Waiting for the agents to report after a restart of the server."


def _confirmed_before(watched: Watched, decision: Decision) -> Decision:
    """What another server has confirmed need not be proven again, while nobody has moved since.

    As long as not all ranks are seen, what is found may yet become the same.
    """
    inherited = watched.inherited
    if inherited is None or decision.state is not State.SUSPECTED or not _lasts(watched, decision):
        watched.inherited = None
        return decision
    found = (watched.finding.kind, watched.finding.culprit_ranks)
    if found == (inherited.verdict.kind, inherited.verdict.culprit_ranks):
        watched.inherited = None
        watched.memory = detect.confirm(watched.memory)
        reason = "no progress since the hang was confirmed"
        return dataclasses.replace(decision, state=State.HUNG, reason=reason)
    if _is_whole(watched):
        watched.inherited = None
        return decision
    return dataclasses.replace(decision, state=State.UNKNOWN, reason=_WAITING)


def _lasts(watched: Watched, decision: Decision) -> bool:
    """Whether nobody has moved since the inherited incident was confirmed."""
    confirmed_at = watched.inherited.confirmed_at if watched.inherited is not None else None
    if confirmed_at is None:
        return False
    since_s = (watched.last_seen - confirmed_at).total_seconds()
    return decision.stalled_s + _SLACK_S >= since_s


def _is_whole(watched: Watched) -> bool:
    coverage = diagnose.coverage(watched.snapshot)
    return coverage.reporting >= coverage.world_size


def unheard(watched: Watched, decision: Decision, ranks: int) -> Decision:
    """`unknown` where so many ranks are behind a server that is not heard, unless whoever waits and
    whoever is waited for are all heard here."""
    if ranks == 0 or (decision.state in _TROUBLE and _is_heard(watched)):
        return decision
    where = "is connected to another server" if ranks == 1 else "are connected to other servers"
    who = "1 rank" if ranks == 1 else f"{ranks} ranks"
    reason = f"{who} {where}, not heard at present"
    return dataclasses.replace(decision, state=State.UNKNOWN, reason=reason, wishes=())


def _is_heard(watched: Watched) -> bool:
    finding, seen = watched.finding, watched.snapshot.ranks
    ranks = {*ranges.parse(finding.waiting), *ranges.parse(finding.culprit_ranks)}
    views = [seen[rank] for rank in ranks if rank in seen]
    return bool(views) and all(view.link is Link.LIVE for view in views)


def apply(watched: Watched, decision: Decision, now_s: float) -> Decision:
    """`unknown` in place of a calm decision while an inherited incident has not been seen again."""
    if watched.inherited is None:
        return decision
    if watched.inherited.attempt != watched.snapshot.attempt:
        watched.inherited = None
        return decision
    if decision.state in _TROUBLE:
        return _confirmed_before(watched, decision)
    if decision.state is State.UNKNOWN or not _is_whole(watched):
        watched.steady_since_s = None
    elif watched.steady_since_s is None:
        watched.steady_since_s = now_s
    elif now_s - watched.steady_since_s >= STEADY_S:
        watched.inherited = None
        return decision
    return dataclasses.replace(decision, state=State.UNKNOWN, reason=_WAITING)
