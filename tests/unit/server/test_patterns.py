"""Patterns of names: the same in memory and in a query."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangwatch_server import patterns


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("", "anything", True),
        ("llm-*", "llm-7b", True),
        ("llm-*", "llm-", True),
        ("llm-*", "my-llm-7b", False),
        ("gpu-?", "gpu-1", True),
        ("gpu-?", "gpu-17", False),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
        ("*x*", "line\nx\nline", True),
        ("50%_\\", "50%_\\", True),
        ("a*b*c", "a-b-b-c-c", True),
        ("a*?b", "ab", False),
        ("*ab*ab", "xab", False),
    ],
)
def test_star_and_question_mark_are_all_that_is_special(
    pattern: str, name: str, fits: bool
) -> None:
    assert patterns.matches(pattern, name) is fits


def test_what_is_special_to_sql_stays_what_it_is() -> None:
    assert patterns.sql(r"50%_\*?") == r"50\%\_\\%_"


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_name_fits_itself_and_its_own_beginning_with_a_star(begin: str, end: str) -> None:
    literal = "".join(letter for letter in begin if letter not in "*?")

    assert patterns.matches(literal + "*", literal + end)
    assert not literal or patterns.matches(literal, literal)


def test_many_stars_cost_no_more_than_one() -> None:
    assert not patterns.matches("*" * 150 + "b", "a" * 4000)


def test_a_long_name_and_many_pieces_are_told_apart_at_once() -> None:
    assert not patterns.matches("*a" * 60 + "*b", "a" * 4000)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_a_pattern_means_what_the_shell_means(pattern: str, name: str) -> None:
    assert patterns.matches(pattern, name) == (not pattern or fnmatchcase(name, pattern))
