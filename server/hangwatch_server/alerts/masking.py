"""Takes secrets out of what receivers and libraries say: many repeat the address they were asked.

`Cannot POST /hooks/KEY`, a redirect's `Location: https://host/hooks/KEY`: such answers stand in the
delivery log and the server's log, which more people read than may know the key. Pure.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

MASK = "[hidden]"
# Shorter pieces are words (`v2`, `hooks`, a port): hiding them would hide the meaning as well.
LEAST_CHARS = 8
# Of a piece that the end of a cut text has begun.
_LEAST_BEGUN = 5
_SEPARATORS = re.compile(r"[/?&=;:@#\s]+")


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, and without the parts of them that tell as much."""
    pieces = sorted({piece for secret in secrets for piece in _pieces(secret)}, key=len)
    for piece in reversed(pieces):
        text = text.replace(piece, MASK)
    for piece in reversed(pieces):
        text = _without_beginning(text, piece)
    return text


def _pieces(secret: str) -> Iterator[str]:
    """The secret, its path and query as one, and each long part; also as they are when decoded."""
    parts, host = [secret, *_SEPARATORS.split(secret)], ""
    with contextlib.suppress(ValueError):  # it cannot be read as an address
        address = urlsplit(secret)
        parts += [address.path, f"{address.path}?{address.query}"]
        host = address.hostname or ""
    for part in parts:
        for form in (part, unquote(part)):
            if len(form) >= LEAST_CHARS and form.lower() != host:
                yield form


def _without_beginning(text: str, piece: str) -> str:
    """A text that was cut may end in the middle of a secret."""
    body = text.removesuffix("…")
    for size in range(min(len(piece) - 1, len(body)), _LEAST_BEGUN - 1, -1):
        if body.endswith(piece[:size]):
            return f"{body[:-size]}{MASK}"
    return text
