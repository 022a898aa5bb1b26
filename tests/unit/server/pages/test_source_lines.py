from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server.pages import source_lines

FILE = "/home/ada/train.py"


def source(*lines: str, line: int = 11, first: int = 10) -> wire.Source:
    return wire.Source(file=FILE, line=line, first=first, lines=lines)


def test_lines_lose_what_all_of_them_are_indented_by() -> None:
    texts = source_lines.of([source("    for x in data:", "        step(x)", "")])

    told = [(line.number, line.text, line.is_at) for line in texts[FILE, 11]]

    assert told == [(10, "for x in data:", False), (11, "    step(x)", True)]


def test_line_alone_stands_at_the_margin() -> None:
    texts = source_lines.of([source("for x in data:", "    step(x)")])

    (alone,) = source_lines.alone(texts[FILE, 11])

    assert (alone.text, source_lines.at(texts, (FILE, 11))) == ("step(x)", "step(x)")


def test_empty_line_that_the_stack_stands_at_is_kept() -> None:
    texts = source_lines.of([source("", "", "")])

    assert [line.number for line in texts[FILE, 11]] == [11]


def test_unknown_place_says_nothing() -> None:
    assert source_lines.at(source_lines.of([]), (FILE, 1)) == ""
