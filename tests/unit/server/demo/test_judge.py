"""What the judge finds different between a verdict and what a case expects."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from hangwatch_server.api import examples
from hangwatch_server.demo import cases, judge
from hangwatch_server.model import Condition, Kind, State

VERDICT: dict[str, Any] = examples.VERDICT
CULPRIT: dict[str, Any] = VERDICT["culprits"][0]
CASE = msgspec.structs.replace(
    cases.load()[0],
    state=State(VERDICT["state"]),
    kind=Kind(VERDICT["kind"]),
    culprits=VERDICT["culprit_ranks"],
    condition=Condition(CULPRIT["condition"]),
    where=CULPRIT["where"],
    seq=VERDICT["seq"],
    hint=VERDICT["hints"][0],
    says=(VERDICT["summary"], VERDICT["evidence"][0]["text"]),
)


def test_verdict_as_expected_has_no_differences() -> None:
    assert judge.differences(CASE, VERDICT) == []
    assert judge.is_named(CASE, VERDICT)


@pytest.mark.parametrize("key", ["state", "kind", "culprit_ranks", "seq"])
def test_each_field_of_the_verdict_counts(key: str) -> None:
    (found,) = judge.differences(CASE, {**VERDICT, key: "other"})

    assert key in found


@pytest.mark.parametrize("key", ["condition", "where"])
def test_each_culprit_counts(key: str) -> None:
    verdict = copy.deepcopy(VERDICT)
    verdict["culprits"][0] |= {key: "other", "detail": ""}

    (found,) = judge.differences(CASE, verdict)

    assert f"rank {CULPRIT['rank']} is" in found


def test_words_that_nobody_says_are_missed() -> None:
    case = msgspec.structs.replace(CASE, says=("all_reduce", "words of a poem"))

    (found,) = judge.differences(case, VERDICT)

    assert "'words of a poem'" in found


def test_number_of_incidents_counts() -> None:
    twice = msgspec.structs.replace(CASE, incidents=2)

    assert judge.of_incidents(CASE, 1) == []
    assert judge.of_incidents(twice, 1) == ["incidents are 1, expected 2"]


def test_suspicion_with_the_right_culprit_names_it_already() -> None:
    assert judge.is_named(CASE, {**VERDICT, "state": "suspected"})
    assert not judge.is_named(CASE, {**VERDICT, "state": "healthy"})
