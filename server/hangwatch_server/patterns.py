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
    """Each piece is taken where it first fits, and never looked for again further on.

    With stars between them that is as good as any place, and jobs choose the names: to try every
    place for every piece takes minutes over a long name (fnmatch does the same, bpo-40480).
    """
    first, *rest = re.split(r"\*+", pattern)
    if not rest:
        return re.compile(_literal(first), re.DOTALL)
    *inner, last = rest
    found = "".join(f"(?>.*?{_literal(piece)})" for piece in inner)
    return re.compile(f"{_literal(first)}{found}.*{_literal(last)}", re.DOTALL)


def _literal(piece: str) -> str:
    return "".join("." if one == "?" else re.escape(one) for one in piece)
