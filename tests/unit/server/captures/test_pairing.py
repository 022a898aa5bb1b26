"""The capture that another one is compared with shares a rank with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.support import verdicts as make

from hangwatch_server.captures import pairing
from hangwatch_server.model import Capture


def taken(name: str, ranks: str, minute: float, attempt: int = 1) -> Capture:
    at = make.SINCE + timedelta(minutes=minute)
    return replace(make.capture(name), ranks=ranks, requested_at=at, attempt=attempt)


def test_captures_of_other_ranks_in_between_are_passed_over() -> None:
    own, others, waiting = taken("c", "5", 2), taken("b", "0-3,9", 1), taken("a", "5", 0)

    assert pairing.before(own, [others, waiting]) is waiting


def test_one_rank_in_common_is_enough() -> None:
    earlier = taken("a", "0-7", 0)

    assert pairing.before(taken("b", "5,12", 1), [earlier]) is earlier


def test_another_attempt_and_a_capture_of_long_ago_say_nothing() -> None:
    assert pairing.before(taken("b", "5", 1, attempt=2), [taken("a", "5", 0)]) is None
    assert pairing.before(taken("b", "5", 61), [taken("a", "5", 0)]) is None
