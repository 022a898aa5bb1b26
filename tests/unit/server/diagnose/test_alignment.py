"""A sequence of calls that lost or gained a few."""

from __future__ import annotations

from itertools import cycle, islice

from hangwatch_server.diagnose.calls.alignment import Place, align, period


def numbered(calls: str, first: int = 1) -> dict[int, str]:
    return dict(enumerate(calls, start=first))


def steps(pattern: str, length: int) -> str:
    return "".join(islice(cycle(pattern), length))


def test_call_left_out_is_found_where_it_happened() -> None:
    whole = steps("abc", 30)

    found = align(numbered(whole[:10] + whole[11:]), numbered(whole))

    assert found == Place(seq=11, calls=1, fits=19)


def test_call_made_twice_is_found() -> None:
    whole = steps("abc", 30)

    found = align(numbered(whole[:10] + whole[9:]), numbered(whole))

    assert found is not None
    assert (found.seq, found.calls) == (11, -1)


def test_four_calls_left_out_are_the_most_that_is_looked_for() -> None:
    whole = "abcdefghijklmnopqrstuvwxyz"

    four = align(numbered(whole[:9] + whole[13:]), numbered(whole))
    five = align(numbered(whole[:9] + whole[14:]), numbered(whole))

    assert four == Place(seq=10, calls=4, fits=13)
    assert five is None


def test_records_that_agree_have_no_shift() -> None:
    assert align(numbered("abcabc"), numbered("abcabcab")) is None


def test_one_different_call_is_no_shift() -> None:
    assert align(numbered("abcXbcabc"), numbered("abcabcabc")) is None


def test_record_that_begins_after_the_shift_has_no_place() -> None:
    whole = steps("abc", 30)

    assert align(numbered(whole[11:], first=11), numbered(whole[10:], first=11)) is None


def test_period_of_the_others_foretells_the_call_that_comes_too_early() -> None:
    """The rest waits in "a"; this rank is in "b" already."""
    found = align(numbered("abcabcb"), numbered("abcabca"))

    assert found == Place(seq=7, calls=1, fits=1)


def test_call_of_the_next_part_does_not_refute_what_the_record_shows() -> None:
    """The rest is in the last step; this rank has left one call out and is at the barrier."""
    whole = steps("abc", 15)

    found = align(numbered(whole[:5] + whole[6:] + "|"), numbered(whole))

    assert found == Place(seq=6, calls=1, fits=9)


def test_unforeseen_call_counts_only_where_somebody_must_be_out_of_step() -> None:
    mine, others = numbered("abcabcc"), numbered("abcabc")

    assert align(mine, others) is None
    assert align(mine, others, foretells=True) == Place(seq=7, calls=-1, fits=0)


def test_alternating_calls_are_decided_by_who_is_behind() -> None:
    whole = steps("ab", 20)
    skipped = whole[:8] + whole[9:]
    added = whole[:8] + whole[7] + whole[8:]

    behind = align(numbered(skipped), numbered(whole))
    ahead = align(numbered(added), numbered(whole))
    level = align(numbered(added[:20]), numbered(whole))

    assert behind is not None
    assert behind.calls == 1
    assert ahead is not None
    assert ahead.calls == -1
    assert level is None


def test_period_needs_two_rounds() -> None:
    assert period(numbered("abcabc")) == 3
    assert period(numbered("abcab")) is None
    assert period(numbered("aaaa")) == 1
