"""Durations as people and query strings write them, `30s`, `2m`, `7d`, and as pages tell them."""

from __future__ import annotations

import re

from hangwatch_server.errors import HangwatchError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_TENTHS_BELOW_S = 10  # one decimal under this, whole seconds above
_PATTERN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)?")


class BadDurationError(HangwatchError):
    """Text that is no duration, or one beyond what the call allows."""


def seconds(text: str, *, longest_s: float) -> float:
    """Read a duration (bare numbers are seconds); raise BadDurationError over `longest_s`."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise BadDurationError(
            f"'{shown}' is not a duration: write a number with a unit, as in 500ms, 30s, 2m, 1h, 7d"
        )
    value_s = float(match.group(1)) * _UNITS[match.group(2) or "s"]
    if value_s > longest_s:
        raise BadDurationError(f"{text} is too long: this call takes at most {brief(longest_s)}")
    return value_s


def brief(duration_s: float) -> str:
    """The shortest exact form of whole seconds: 7200 is `2h`, 90 is `90s`."""
    for unit in ("d", "h", "m"):
        count, rest = divmod(duration_s, _UNITS[unit])
        if count and not rest:
            return f"{count:.0f}{unit}"
    return f"{duration_s:g}s"


def spoken(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `4 min 12 s`, `3 h 12 min`, `2 d 4 h`; `never` for None."""
    if seconds is None:
        return "never"
    seconds = max(0.0, seconds)
    if seconds < _TENTHS_BELOW_S:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02d} s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02d} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S} h"
