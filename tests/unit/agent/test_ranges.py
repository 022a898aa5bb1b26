"""Rank text of the agent is the server's rank text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import ranges
from hangwatch_server import ranges as server_ranges


@given(st.sets(st.integers(0, 300)))
def test_agent_and_server_write_the_same_text(ranks: set[int]) -> None:
    assert ranges.text(ranks) == server_ranges.text(ranks)


@given(st.lists(st.integers(0, 300), min_size=1))
def test_any_order_gives_the_sorted_text(ranks: list[int]) -> None:
    spec = ",".join(map(str, ranks))

    assert ranges.sorted_text(spec) == server_ranges.text(ranks)


def test_runs_and_strides_are_read() -> None:
    assert ranges.sorted_text("4-7,0-3") == "0-7"
    assert ranges.sorted_text("0-8:4,12") == "0-12:4"


def test_text_that_would_explode_is_refused() -> None:
    assert ranges.sorted_text("0-9999999") is None
    assert ranges.sorted_text("0-x") is None
    assert ranges.sorted_text("1-5:0") is None


@given(st.sets(st.integers(0, 300)))
def test_size_counts_the_ranks_of_a_text(ranks: set[int]) -> None:
    assert ranges.size(ranges.text(ranks)) == len(ranks)
