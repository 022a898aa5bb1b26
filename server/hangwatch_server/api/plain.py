"""Lists and answers as text for shells: `?format=plain`. One row per line, fields split by a tab.

Jobs chose parts of it: control and direction marks are left out, so that no name makes a row of its
own or steers a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import PlainTextResponse

from hangwatch_server.pages import words


class Format(StrEnum):
    JSON = "json"
    PLAIN = "plain"


Lines = Annotated[
    Format, Query(description="`plain` is text for shells: a row per line, fields split by a tab.")
]
Word = Annotated[Format, Query(description="`plain` is the state alone, for scripts.")]


def rows(found: Iterable[Sequence[object]], response: Response) -> PlainTextResponse:
    """The rows of a page, with the link to the next that `paging` has put on `response`."""
    headers = {name: value for name, value in response.headers.items() if name == "link"}
    return PlainTextResponse("".join(_line(row) for row in found), headers=headers)


def word(text: str) -> PlainTextResponse:
    return PlainTextResponse(f"{text}\n")


def _line(row: Sequence[object]) -> str:
    return "\t".join(_field(value) for value in row) + "\n"


def _field(value: object) -> str:
    if value is None or value == "":
        return "-"  # never empty: a shell that splits at blanks counts fields
    return " ".join(words.plain(str(value)).split())
