"""Durations, names and hostile text as pages show them."""

from __future__ import annotations

import pytest

from hangwatch_server import model
from hangwatch_server.pages import words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "never"),
        (-3.0, "0.0 s"),
        (0.44, "0.4 s"),
        (12.9, "12 s"),
        (252.4, "4 min 12 s"),
        (11_520.0, "3 h 12 min"),
        (187_200.0, "2 d 4 h"),
    ],
)
def test_a_duration_has_two_parts_at_most(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(10, "10 s"), (1800, "30 min"), (1.5, "1.5 s"), (5, "5 s"), (3600, "1 h")]
)
def test_a_length_in_a_sentence_has_no_empty_parts(seconds: float, text: str) -> None:
    assert words.length(seconds) == text


def test_plain_text_cannot_change_direction_or_ring_the_bell() -> None:
    assert words.plain("a\u202eb\u2066c\a\n🚂") == "abc\n🚂"


def test_a_long_text_is_cut_with_a_mark() -> None:
    assert words.short("a" * 90, 10) == "a" * 9 + "…"
    assert words.short("short", 10) == "short"


def test_a_file_is_told_by_its_end() -> None:
    assert words.short_file("/opt/torch/utils/data/fetch.py") == "…/utils/data/fetch.py"
    assert words.short_file("train.py") == "train.py"


def test_ranks_are_counted_and_text_that_is_none_counts_zero() -> None:
    assert words.count("0-3,7") == 5
    assert words.count("several") == 0


@pytest.mark.parametrize("kind", list(model.Kind))
def test_each_kind_has_words(kind: model.Kind) -> None:
    assert words.kind(kind)


@pytest.mark.parametrize("condition", list(model.Condition))
def test_each_condition_has_words(condition: model.Condition) -> None:
    assert words.condition(condition)


@pytest.mark.parametrize("state", list(model.IncidentState))
def test_each_incident_state_has_words_and_a_mark(state: model.IncidentState) -> None:
    assert words.incident_state(state)
    assert words.incident_mark(state)


def test_each_state_has_a_place_and_a_shape_of_its_own() -> None:
    assert set(words.STATE_ORDER) == set(model.State)
    assert len({words.GLYPHS[state] for state in model.State}) == len(model.State)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 h"), (0.04, "under 0.1 h"), (1.44, "1.4 h"), (1234.4, "1,234 h")],
)
def test_hours_are_as_exact_as_people_need(value: float, text: str) -> None:
    assert words.hours(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12, "under 1 min ago"), (61, "1 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")],
)
def test_how_long_ago_is_one_unit(seconds: float, text: str) -> None:
    assert words.ago(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12 B"), (3_400_000, "3.4 MB"), (85_520_809_984, "85.5 GB")]
)
def test_sizes_have_a_fitting_unit(count: int, text: str) -> None:
    assert words.size(count) == text


def test_a_clock_that_goes_wrong_says_which_way() -> None:
    assert words.skew(2.34) == "clock 2.3 s ahead"
    assert words.skew(-75.0) == "clock 1 min 15 s behind"


def test_invisible_characters_are_left_out_of_names() -> None:
    assert words.plain("a\u200bb\ufeffc") == "abc"
