"""What the lines that a stack stands at say, as pages show them: below their frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hangwatch_agent import wire

Place = tuple[str, int]  # file and line


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    number: int
    text: str
    is_at: bool  # the line that the stack stands at


Texts = Mapping[Place, tuple[SourceLine, ...]]


def of(sources: Iterable[wire.Source]) -> Texts:
    """The lines round each place, without what all of them are indented by."""
    return {(source.file, source.line): _lines(source) for source in sources if source.lines}


def at(texts: Texts, place: Place) -> str:
    """The one line at a place, "" where it is not known."""
    return next((line.text.strip() for line in texts.get(place, ()) if line.is_at), "")


def alone(lines: Iterable[SourceLine]) -> tuple[SourceLine, ...]:
    """The line that the stack stands at, without those round it."""
    return tuple(replace(line, text=line.text.strip()) for line in lines if line.is_at)


def _lines(source: wire.Source) -> tuple[SourceLine, ...]:
    margin = min((_indent(text) for text in source.lines if text.strip()), default=0)
    lines = [
        SourceLine(number=number, text=text[margin:], is_at=number == source.line)
        for number, text in enumerate(source.lines, source.first)
    ]
    while lines and not lines[0].text.strip() and not lines[0].is_at:
        lines.pop(0)
    while lines and not lines[-1].text.strip() and not lines[-1].is_at:
        lines.pop()
    return tuple(lines)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))
