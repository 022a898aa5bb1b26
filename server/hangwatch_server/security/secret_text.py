"""The text of a token, `hw_<prefix>_<secret>`, and the hash under which it is kept.

The prefix is stored in clear so that people can tell tokens apart; the whole text is only ever
shown once. A plain SHA-256 is enough because the secret has 256 random bits: there is nothing to
guess, and looking it up by its hash leaks no timing about the secret.
"""

from __future__ import annotations

import hashlib
import re
import secrets

MAX_CHARS = 256
MIN_CHARS = 20  # for a text that an operator chose
_OURS = re.compile(r"hw_([0-9a-f]{8})_[A-Za-z0-9_-]{20,}")


def new() -> str:
    return f"hw_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def prefix_of(text: str) -> str:
    """The part that may be shown; for a text of the operator's own form, nothing of it."""
    match = _OURS.fullmatch(text)
    return match.group(1) if match else "custom"
