"""When a silence is on: once, daily, weekly, cancelled."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.planning import SUBJECT, silence

from hangwatch_server.alerts import matching, people
from hangwatch_server.model.alerts import Matcher, MatchField, Repeat

NIGHT = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)
WINDOW = silence(NIGHT, 4 * 3600)  # to two in the morning


@pytest.mark.parametrize(
    ("repeat", "days", "hours", "is_on"),
    [
        (Repeat.ONCE, 0, -1, False),
        (Repeat.ONCE, 0, 0, True),
        (Repeat.ONCE, 0, 4, False),
        (Repeat.ONCE, 1, 0, False),
        (Repeat.DAILY, 1, 0, True),
        (Repeat.DAILY, 400, 3.9, True),
        (Repeat.DAILY, 400, 4, False),
        (Repeat.DAILY, 0, -1, False),
        (Repeat.WEEKLY, 1, 0, False),
        (Repeat.WEEKLY, 7, 1, True),
        (Repeat.WEEKLY, 14, 4, False),
    ],
)
def test_a_window_is_on_from_its_start_to_just_before_its_end(
    repeat: Repeat, days: int, hours: float, is_on: bool
) -> None:
    now = NIGHT + timedelta(days=days, hours=hours)

    assert matching.is_on(replace(WINDOW, repeat=repeat), now) is is_on


def test_the_end_is_that_of_the_occurrence_that_is_on() -> None:
    now = NIGHT + timedelta(days=3, hours=1)

    end = matching.end_of(replace(WINDOW, repeat=Repeat.DAILY), now)

    assert end == NIGHT + timedelta(days=3, hours=4)


def test_a_cancelled_silence_is_off() -> None:
    assert not matching.is_on(replace(WINDOW, cancelled_at=NIGHT), NIGHT)


def test_all_matchers_must_match() -> None:
    job = Matcher(field=MatchField.JOB, pattern="gpt-*")
    node = Matcher(field=MatchField.NODE, pattern="node-z")

    assert matching.matches((job,), SUBJECT)
    assert not matching.matches((job, node), SUBJECT)
    assert matching.matches((), SUBJECT)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"matchers": ()}, "needs a matcher"),
        ({"ends_at": NIGHT}, "ends after it starts"),
        ({"ends_at": NIGHT - timedelta(hours=1)}, "ends after it starts"),
        ({"ends_at": NIGHT + timedelta(days=91)}, "at most 90 days"),
        ({"repeat": Repeat.DAILY, "ends_at": NIGHT + timedelta(hours=25)}, "at most 24 hours"),
        ({"repeat": Repeat.WEEKLY, "ends_at": NIGHT + timedelta(days=8)}, "at most 168 hours"),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused_in_words(
    changes: dict[str, object], words: str
) -> None:
    with pytest.raises(people.BadSilenceError, match=words):
        people.check(replace(WINDOW, **changes), NIGHT)  # type: ignore[arg-type]


def test_one_that_is_over_already_is_refused_unless_it_repeats() -> None:
    tomorrow = NIGHT + timedelta(days=1)

    people.check(replace(WINDOW, repeat=Repeat.DAILY), tomorrow)
    with pytest.raises(people.BadSilenceError, match="over already"):
        people.check(WINDOW, tomorrow)


def test_a_silence_is_described_in_one_line() -> None:
    short = silence(NIGHT, 3600)

    assert people.describe(WINDOW) == "job=gpt-*, 2026-11-20 22:00 to 2026-11-21 02:00 UTC"
    assert people.describe(replace(short, repeat=Repeat.WEEKLY)) == (
        "job=gpt-*, 2026-11-20 22:00 to 23:00 UTC, weekly"
    )
