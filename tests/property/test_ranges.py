"""Rank sets survive their text form, and other text is refused with BadRangeError only."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from hangwatch_server import errors, ranges

RANKS = st.sets(st.integers(0, 5000), max_size=200)


@given(RANKS)
def test_ranks_come_back_from_their_text(ranks: set[int]) -> None:
    assert ranges.parse(ranges.text(ranks)) == tuple(sorted(ranks))


@given(st.integers(0, 1000), st.integers(1, 64), st.integers(3, 500))
def test_strided_ranks_are_one_part(first: int, step: int, count: int) -> None:
    shown = ranges.text(range(first, first + step * count, step))

    assert "," not in shown


@given(RANKS)
def test_text_does_not_depend_on_order_or_repeats(ranks: set[int]) -> None:
    ordered = sorted(ranks)

    assert ranges.text([*reversed(ordered), *ordered]) == ranges.text(ordered)


@given(st.text(alphabet="0123456789-:, x", max_size=30))
def test_any_text_is_read_or_refused(spec: str) -> None:
    with contextlib.suppress(errors.BadRangeError):
        ranks = ranges.parse(spec)
        assert ranks == tuple(sorted(set(ranks)))


@given(RANKS, st.integers(0, 6000))
def test_ranks_below_an_end_are_those_of_the_whole_text(ranks: set[int], end: int) -> None:
    assert ranges.below(ranges.text(ranks), end) == {rank for rank in ranks if rank < end}


@given(RANKS, st.integers(0, 5000))
def test_a_text_holds_the_ranks_that_it_was_made_of_and_no_other(
    ranks: set[int], rank: int
) -> None:
    assert ranges.holds(ranges.text(ranks), rank) == (rank in ranks)
    assert ranges.holds(ranges.text({*ranks, rank}), rank)
