"""The programs of tests/programs, run for real, get the verdicts that their cases.toml say.

The cases that only the scorecard plays are left out.
"""

from __future__ import annotations

import pytest

from hangwatch_server.demo import cases
from hangwatch_server.demo.cases import Case
from hangwatch_server.demo.conductor import Conductor, Outcome
from hangwatch_server.model import State

HANGING = [case for case in cases.tested() if not case.is_healthy]
HEALTHY = [case for case in cases.tested() if case.is_healthy]


def name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", HANGING, ids=name)
def test_hang_gets_its_kind_and_culprits(
    case: Case, conductor: Conductor, outcomes: list[Outcome]
) -> None:
    outcome = conductor.outcome(case.name)
    outcomes.append(outcome)

    assert not outcome.differences, f"{outcome.verdict}\n{outcome.log}"


@pytest.mark.parametrize("case", HEALTHY, ids=name)
def test_healthy_job_raises_nothing(
    case: Case, conductor: Conductor, outcomes: list[Outcome]
) -> None:
    outcome = conductor.outcome(case.name)
    outcomes.append(outcome)

    assert not outcome.differences, f"{outcome.verdict}\n{outcome.log}"
    assert State.HUNG not in outcome.states
