"""Patterns of names that people write: `*` for any text, `?` for one character. Nothing else.

Not fnmatch, whose brackets Postgres does not know: the same pattern has to mean the same to a
query and to a name in memory.
"""

from __future__ import annotations

import functools
import re

MAX_CHARS = 200
_SQL = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}


def matches(pattern: str, name: str) -> bool:
    """Whether the whole name fits; the empty pattern fits every name."""
    return not pattern or _compiled(pattern).fullmatch(name) is not None


def sql(pattern: str) -> str:
    r"""The same for LIKE, whose escape is the backslash."""
    return "".join(_SQL.get(letter, letter) for letter in pattern)


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Neighbouring stars mean what one does, and together would take exponential time.
    joined = re.sub(r"\*+", "*", pattern)
    pieces = {"*": ".*", "?": "."}
    return re.compile("".join(pieces.get(one, re.escape(one)) for one in joined), re.DOTALL)
