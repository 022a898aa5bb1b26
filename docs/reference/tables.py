"""Tables of the generated pages, as Markdown. Text only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |"
