"""What the colours and shapes of the rank grid tell: states, lag in a group, age of the last beat,
conditions or stacks. A class of ranks has a word, a tone and a mark; the legend shows all three.

The choice is part of the address, so that what one person sees can be sent to another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hangwatch_server.model import Lag, RankRow
from hangwatch_server.pages import words

MOST_CLASSES = 7  # people tell no more colours apart; the rest is one class
_WORD_CHARS = 60
AGES_S = (3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
NEVER = len(AGES_S) + 1


class By(StrEnum):
    STATE = "state"
    LAG = "lag"
    AGE = "age"
    CONDITION = "condition"
    STACK = "stack"


@dataclass(frozen=True, slots=True)
class Class:
    word: str
    tone: str  # names a colour of tokens.css
    mark: str  # names a symbol of macros.html, and the same shape on the canvas
    is_quiet: bool = False  # drawn small: it is not what one looks for


@dataclass(frozen=True, slots=True)
class Colouring:
    """`of` is the class of each rank by its place in `classes`, in the order of the rows."""

    by: By
    classes: tuple[Class, ...]
    of: tuple[int, ...]

    def legend(self) -> list[tuple[Class, int]]:
        """The classes that occur, with how many ranks are in each."""
        counts = Counter(self.of)
        return [(one, counts[at]) for at, one in enumerate(self.classes) if counts[at]]


_STATES = {
    "culprit": Class("culprit", "hung", "hung"),
    "gone": Class("gone", "failed", "failed"),
    "silent": Class("silent", "unknown", "unknown"),
    "unknown": Class("unknown", "unknown", "unknown"),
    "waiting": Class("waiting", "expected_wait", "expected_wait"),
    "healthy": Class("healthy", "healthy", "healthy"),
    "finished": Class("finished", "finished", "finished"),
}
_LAGS = (
    Class("10 or more behind", "failed", "failed"),
    Class("2 to 9 behind", "hung", "hung"),
    Class("1 behind", "suspected", "suspected"),
    Class("not known", "unknown", "unknown"),
    Class("at the front", "healthy", "healthy"),
    Class("in no such group", "faint", "healthy", is_quiet=True),
)
_LAG_UNKNOWN, _LAG_FRONT, _LAG_OUTSIDE = 3, 4, 5
_AGES = (
    Class("never heard", "unknown", "unknown"),
    Class("over 1 min ago", "failed", "failed"),
    Class("over 10 s ago", "hung", "hung"),
    Class("over 3 s ago", "suspected", "suspected"),
    Class("heard now", "healthy", "healthy"),
)
# For classes that only this job has, the rarest first. All but the colour of what is usual.
_PALETTE = (
    ("hung", "hung"),
    ("suspected", "suspected"),
    ("accent", "expected_wait"),
    ("failed", "failed"),
    ("slow", "slow"),
)
_OTHERS = ("finished", "starting")
_ODD_PROCESSES = {"D": "uninterruptible", "T": "stopped", "t": "traced", "Z": "zombie"}
_USUAL = "nothing odd"
_NO_STACK = "no stack taken"


def choice(asked: str, lens: str) -> By:
    """The colouring that the address asks for; a lens is about lag, and an odd word means none."""
    if asked in tuple(By):
        return By(asked)
    return By.LAG if lens else By.STATE


def of(by: By, rows: Sequence[RankRow], lags: Mapping[int, Lag]) -> Colouring:
    if by is By.LAG:
        return Colouring(by, _LAGS, tuple(_lag_class(lags.get(row.rank)) for row in rows))
    if by is By.AGE:
        return Colouring(by, _AGES, tuple(_age_class(row.age_s) for row in rows))
    if by is By.CONDITION:
        return _ranked(by, [_condition(row) for row in rows], _USUAL, lambda name: name)
    if by is By.STACK:
        return _by_stack(rows)
    names = list(_STATES)
    at = {name: index for index, name in enumerate(names)}
    unknown = at["unknown"]
    return Colouring(by, tuple(_STATES.values()), tuple(at.get(row.state, unknown) for row in rows))


def age_step(age_s: float | None) -> int:
    """How many of AGES_S an age has passed: small numbers that seldom change."""
    if age_s is None:
        return NEVER
    return bisect_right(AGES_S, age_s)


def _lag_class(lag: Lag | None) -> int:
    if lag is None:
        return _LAG_OUTSIDE
    if lag.lag is None:
        return _LAG_UNKNOWN
    if lag.lag <= 0:
        return _LAG_FRONT
    return 2 if lag.lag == 1 else 1 if lag.lag < 10 else 0


def _age_class(age_s: float | None) -> int:
    if age_s is None:
        return 0
    return 4 if age_s < 3 else 3 if age_s < 10 else 2 if age_s < 60 else 1


def _condition(row: RankRow) -> str:
    if row.condition is not None:
        return words.condition(row.condition)
    if row.state in ("gone", "finished", "silent", "unknown"):
        return row.state
    if row.process_state in _ODD_PROCESSES:
        return _ODD_PROCESSES[row.process_state]
    return f"phase {row.phase}" if row.phase else _USUAL


def _by_stack(rows: Sequence[RankRow]) -> Colouring:
    """The largest class of stacks is the usual one; the rare ones stand out."""
    lines = {row.signature: row.where for row in rows if row.signature}
    shared = Counter(lines.values())
    names = {
        key: f"{line} (stack {key[:6]})" if shared[line] > 1 and line else line
        for key, line in lines.items()
    }
    largest = Counter(row.signature for row in rows if row.signature).most_common(1)
    usual = largest[0][0] if largest else ""
    coloured = _ranked(
        By.STACK,
        [row.signature for row in rows],
        usual,
        lambda key: names.get(key) or (f"stack {key[:8]}" if key else _NO_STACK),
    )
    quiet = tuple(
        Class(one.word, "faint", "healthy", is_quiet=True) if one.word == _NO_STACK else one
        for one in coloured.classes
    )
    return Colouring(By.STACK, quiet, coloured.of)


def _ranked(by: By, keys: Sequence[str], usual: str, word: Callable[[str], str]) -> Colouring:
    """The rarest first, each with a tone of its own; the usual one is calm and comes last."""
    counts = Counter(keys)
    odd = sorted((key for key in counts if key != usual), key=lambda key: (counts[key], key))
    shown, rest = odd[: len(_PALETTE)], odd[len(_PALETTE) :]
    classes = [
        Class(words.short(words.plain(word(key)), _WORD_CHARS), *_PALETTE[at])
        for at, key in enumerate(shown)
    ]
    at = {key: index for index, key in enumerate(shown)}
    if rest:
        at.update(dict.fromkeys(rest, len(classes)))
        classes.append(Class("others", *_OTHERS))
    if usual in counts:
        at[usual] = len(classes)
        calm = words.short(words.plain(word(usual)), _WORD_CHARS)
        classes.append(Class(calm, "healthy", "healthy"))
    return Colouring(by, tuple(classes), tuple(at[key] for key in keys))
