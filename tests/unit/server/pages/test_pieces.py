"""What a stream leaves out: sections that its page already has, durations that merely grew."""

from __future__ import annotations

from hangwatch_server.pages.pieces import Sieve

SAME = '<section data-piece id="ranks" data-same></section>'


def _fragment(ranks: str, head: str = "head") -> str:
    return f'<h1>{head}</h1><section data-piece id="ranks" class="block">{ranks}</section>'


def _age(seconds: float) -> str:
    return f'<span data-age="{seconds:.1f}">{seconds:.0f} s</span>'


def test_the_first_fragment_is_whole() -> None:
    assert Sieve().changed(_fragment("5"), 0.0) == _fragment("5")


def test_a_fragment_without_news_is_not_sent() -> None:
    sieve = Sieve()
    sieve.changed(_fragment("5"), 0.0)

    assert sieve.changed(_fragment("5"), 1.0) == ""


def test_a_section_that_the_page_has_is_left_out_when_another_part_changed() -> None:
    sieve = Sieve()
    sieve.changed(_fragment("5"), 0.0)

    assert sieve.changed(_fragment("5", "new"), 1.0) == f"<h1>new</h1>{SAME}"


def test_a_duration_that_only_grew_is_no_news() -> None:
    sieve = Sieve()
    sieve.changed(_fragment(_age(10.0)), 0.0)

    assert sieve.changed(_fragment(_age(40.4)), 30.0) == ""


def test_a_duration_that_began_anew_is_sent() -> None:
    sieve = Sieve()
    sieve.changed(_fragment(_age(10.0)), 0.0)

    assert sieve.changed(_fragment(_age(0.2)), 5.0) == _fragment(_age(0.2))


def test_what_was_sent_last_is_what_later_fragments_are_held_against() -> None:
    sieve = Sieve()
    sieve.changed(_fragment("5"), 0.0)
    sieve.changed(_fragment("6"), 1.0)

    assert sieve.changed(_fragment("5"), 2.0) == _fragment("5")


def test_a_section_that_went_is_news() -> None:
    sieve = Sieve()
    sieve.changed(_fragment("5"), 0.0)

    assert sieve.changed("<h1>head</h1>", 1.0) == "<h1>head</h1>"


def test_a_row_of_a_table_is_left_out_as_a_row() -> None:
    sieve = Sieve()
    row = '<tr data-piece id="job-a1" class="row-hung"><td>gpt</td></tr>'
    sieve.changed(f"<h1>one</h1>{row}", 0.0)

    assert sieve.changed(f"<h1>two</h1>{row}", 1.0) == (
        '<h1>two</h1><tr data-piece id="job-a1" data-same></tr>'
    )
