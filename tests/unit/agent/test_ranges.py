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


@given(st.sets(st.integers(0, 300), min_size=1))
def test_size_counts_the_ranks_of_a_text(ranks: set[int]) -> None:
    found = ranges.measured(ranges.text(ranks))

    assert found is not None
    assert (found.members, found.highest) == (len(ranks), max(ranks))
    assert ranges.size(ranges.text(ranks)) == len(ranks)


PARTS = st.builds(
    lambda first, length, step: (first, first + length, step),
    st.integers(0, 60),
    st.integers(0, 40),
    st.integers(1, 5),
)


@given(st.lists(PARTS, min_size=1, max_size=5))
def test_parts_that_overlap_are_one_set(parts: list[tuple[int, int, int]]) -> None:
    spec = ",".join(f"{first}-{last}:{step}" for first, last, step in parts)
    members = {rank for first, last, step in parts for rank in range(first, last + 1, step)}

    assert ranges.sorted_text(spec) == server_ranges.text(members)


def test_runs_of_any_length_take_one_step_each() -> None:
    sizes = [ranges.measured(spec) for spec in ("0-99999", "0-799,808-99999", "0-99992:8")]

    assert [size.steps for size in sizes if size] == [1, 2, 1]
    assert (ranges.measured("x"), ranges.size("x")) == (None, 0)
    assert ranges.measured("3-1") is None
