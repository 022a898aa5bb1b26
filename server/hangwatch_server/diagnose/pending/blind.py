"""Ranks whose agent is lost while they themselves go on: silence is no trouble of such a rank."""

from __future__ import annotations

from hangwatch_server.diagnose.pending import proofs
from hangwatch_server.diagnose.survey import Survey


def is_blind(survey: Survey, rank: int) -> bool:
    """Whether its groups went on after it was last heard: its agent is lost, it was not stuck."""
    beat = survey.beat(rank)
    if beat is None:
        return rank in survey.outsiders_of_used(1)  # never heard, but it has taken part
    for group in beat.groups:
        members = survey.standings.get(group.gid, {})
        held = members.get(rank)
        if held is None or held.entered is None or held.is_exact:
            continue
        if proofs.bound_of(survey, group.gid).seq > held.entered:
            return True
    return False
