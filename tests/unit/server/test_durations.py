"""Durations as text: what is read, what is refused, and the shortest form."""

from __future__ import annotations

import pytest

from hangwatch_server import durations


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [("30s", 30), ("2m", 120), ("500ms", 0.5), ("1h", 3600), ("7d", 604800), ("15", 15), ("0s", 0)],
)
def test_a_duration_is_read_in_its_unit(text: str, expected_s: float) -> None:
    assert durations.seconds(text, longest_s=1e9) == expected_s


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 week", "1e9", "nan", "inf", "9" * 50])
def test_text_that_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(durations.BadDurationError, match="as in 500ms, 30s"):
        durations.seconds(text, longest_s=1e9)


def test_a_duration_over_the_limit_names_the_limit() -> None:
    with pytest.raises(durations.BadDurationError, match="at most 2m"):
        durations.seconds("121s", longest_s=120)


@pytest.mark.parametrize(
    ("value_s", "text"), [(7200, "2h"), (90, "90s"), (120, "2m"), (0.5, "0.5s")]
)
def test_the_brief_form_is_exact(value_s: float, text: str) -> None:
    assert durations.brief(value_s) == text
