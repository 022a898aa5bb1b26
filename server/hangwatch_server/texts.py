"""What a job or its user wrote, made harmless and short for people. Escaping is elsewhere."""

from __future__ import annotations

import unicodedata

NO_NUL = r"^[^\x00]*$"  # pattern of what Postgres can hold as text

# Invisible, and of no use in a name: two names could look alike. Joiners, which emoji need, stay.
_INVISIBLE = frozenset("\u200b\u2060\ufeff\u00ad\u180e")
# Overrides and embeddings can make a name read as another; isolates and joiners (emoji) stay.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def plain(text: str) -> str:
    """Text without control and direction marks, which could make a name read as another."""
    kept = (
        character
        for character in text
        if character not in _BIDI_CONTROLS
        and character not in _INVISIBLE
        and (unicodedata.category(character) != "Cc" or character == "\n")
    )
    return "".join(kept)


def short(text: str, limit: int = 80) -> str:
    """The beginning of a text that a job can make as long as it likes."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
