"""What of a page's fragment a stream need not send again: sections that its reader already has.

A template marks a section or a row of a table with `data-piece` and an id; one that has not changed
travels empty with `data-same`, which the page's script leaves alone. Durations that merely grew
are no change: the page lets them grow by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Pieces do not nest, and text of a job cannot hold a tag: everything it says is escaped.
_PIECE = re.compile(r'<(section|tr) data-piece id="([\w-]+)".*?</\1>', re.DOTALL)
_AGE = re.compile(r'data-age="([0-9.]+)">[^<]*<')
_TOLERANCE_S = 1.5  # between an age as the page lets it grow and as the server knows it
_REST = ""  # the name of what stands outside every piece


@dataclass(frozen=True, slots=True)
class _Sent:
    skeleton: str
    ages: tuple[float, ...]
    at_s: float

    def holds(self, later: _Sent) -> bool:
        """Whether a page that got this shows by now what `later` says."""
        if self.skeleton != later.skeleton:
            return False
        grown_s = later.at_s - self.at_s
        pairs = zip(self.ages, later.ages, strict=True)
        return all(abs(after - before - grown_s) <= _TOLERANCE_S for before, after in pairs)


class Sieve:
    """Of one open stream: remembers what its page has."""

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}

    def changed(self, fragment: str, now_s: float) -> str:
        """The fragment without what the page has; "" when it has all of it."""
        is_any_new = False

        def sift(match: re.Match[str]) -> str:
            nonlocal is_any_new
            tag, name = match[1], match[2]
            if self._has(name, match[0], now_s):
                return f'<{tag} data-piece id="{name}" data-same></{tag}>'
            is_any_new = True
            return match[0]

        text = _PIECE.sub(sift, fragment)
        rest = _PIECE.sub(r"\2", fragment)  # names stay: a piece may come or go
        has_rest = self._has(_REST, rest, now_s)
        return text if is_any_new or not has_rest else ""

    def _has(self, name: str, text: str, now_s: float) -> bool:
        ages = tuple(float(age) for age in _AGE.findall(text))
        sent = _Sent(_AGE.sub("", text), ages, now_s)
        before = self._sent.get(name)
        if before is not None and before.holds(sent):
            return True
        self._sent[name] = sent
        return False
