"""When a moment is kept beside an incident."""

from __future__ import annotations

import dataclasses

from tests.web import making

from hangwatch_server import model
from hangwatch_server.watch import moments

INCIDENT = making.incident(
    making.verdict("job1", "gpt", model.State.HUNG, culprit_ranks="5"),
    state=model.IncidentState.OPEN,
)


def test_opening_confirmation_and_other_culprits_are_moments() -> None:
    confirmed = dataclasses.replace(INCIDENT, state=model.IncidentState.CONFIRMED)
    changed = dataclasses.replace(confirmed, culprit_ranks="6")

    assert moments.reason(None, INCIDENT) == "opened"
    assert moments.reason(moments.key(INCIDENT), confirmed) == "confirmed"
    assert moments.reason(moments.key(confirmed), changed) == "changed"


def test_the_same_again_and_the_end_are_not() -> None:
    ended = dataclasses.replace(INCIDENT, state=model.IncidentState.ENDED)

    assert moments.reason(moments.key(INCIDENT), INCIDENT) == ""
    assert moments.reason(moments.key(INCIDENT), ended) == ""
