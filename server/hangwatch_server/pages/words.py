"""How values read to people: durations, times, names of states, and hostile text made harmless.

Text only. What is believed about a job is decided elsewhere; escaping is Jinja's.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from hangwatch_server import durations, ranges, texts
from hangwatch_server.errors import BadRangeError
from hangwatch_server.model import Condition, IncidentState, Kind, Limits, Link, State
from hangwatch_server.watch.advice import REPEAT_OFFENDER

BYTES_STEP = 1000
GIB = 1024**3
SMALLEST_HOURS, TENTHS_BELOW_HOURS = 0.1, 100
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
SECONDS_SHOWN_BELOW_S = 10  # one decimal under this, whole seconds above

# Worst first: the order of lists, filters and the tab title.
STATE_ORDER = (
    State.HUNG,
    State.FAILED,
    State.SUSPECTED,
    State.SLOW,
    State.UNKNOWN,
    State.EXPECTED_WAIT,
    State.STARTING,
    State.HEALTHY,
    State.FINISHED,
)
GLYPHS = {
    State.HUNG: "▲",
    State.FAILED: "✕",
    State.SUSPECTED: "◆",
    State.SLOW: "◐",
    State.UNKNOWN: "◌",
    State.EXPECTED_WAIT: "■",
    State.STARTING: "○",
    State.HEALTHY: "●",
    State.FINISHED: "✓",
}
_KINDS = {
    Kind.MISSING_RANKS: "ranks missing from a collective",
    Kind.MISMATCH: "ranks made different calls",
    Kind.DEADLOCK: "ranks wait for each other",
    Kind.UNMATCHED_P2P: "a send or receive without its partner",
    Kind.STALLED_COLLECTIVE: "all entered, none finishes",
    Kind.INCOMPLETE_RENDEZVOUS: "ranks missing from the rendezvous",
    Kind.NO_PROGRESS: "nobody moves",
    Kind.NONE: "nothing to report",
}
_CONDITIONS = {
    Condition.EXITED: "has exited",
    Condition.KILLED: "was killed",
    Condition.NODE_LOST: "its node is lost",
    Condition.STOPPED: "stopped by a signal",
    Condition.UNINTERRUPTIBLE: "in uninterruptible sleep",
    Condition.GIL_HELD: "holds the GIL",
    Condition.IN_DATALOADER: "in its dataloader",
    Condition.IN_CHECKPOINT: "in a checkpoint",
    Condition.IN_COMPILE: "compiling",
    Condition.IN_LOCK: "waits for a lock or queue",
    Condition.IN_USER_CODE: "in user code",
    Condition.IN_COLLECTIVE: "in a collective",
    Condition.GPU_BUSY: "waits for its GPU",
    Condition.FINISHED: "has left training",
    Condition.UNRESPONSIVE: "does not respond",
    Condition.UNKNOWN: "condition unknown",
}
_INCIDENTS = {
    IncidentState.OPEN: "suspected",
    IncidentState.CONFIRMED: "open",
    IncidentState.RESOLVED: "resolved",
    IncidentState.ENDED: "ended",
    IncidentState.PRUNED: "cleared",
}
_INCIDENT_MARKS = {
    IncidentState.OPEN: "suspected",
    IncidentState.CONFIRMED: "hung",
    IncidentState.RESOLVED: "healthy",
    IncidentState.ENDED: "finished",
    IncidentState.PRUNED: "healthy",
}
_LINK_MARKS = {Link.LIVE: "healthy", Link.LATE: "slow", Link.LOST: "unknown"}
_DEGREES = ((0.9, "very sure"), (0.7, "fairly sure"), (0.5, "likely"), (0.0, "a guess"))
_PROCESS_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "uninterruptible",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "dead",
    "gone": "gone",
}

duration = durations.spoken
plain = texts.plain
short = texts.short


def length(seconds: float) -> str:
    """A round duration for sentences, without empty parts: `30 min`, `10 s`, `1.5 s`."""
    text = (
        duration(seconds) if seconds % 1 or seconds >= SECONDS_SHOWN_BELOW_S else f"{seconds:.0f} s"
    )
    return text.removesuffix(" 00 s").removesuffix(" 00 min").removesuffix(" 0 h")


def hours(value: float) -> str:
    """Hours for people: `0 h`, `under 0.1 h`, `1.4 h`, `1,234 h`."""
    if value <= 0:
        return "0 h"
    if value < SMALLEST_HOURS:
        return f"under {SMALLEST_HOURS} h"
    return f"{value:.1f} h" if value < TENTHS_BELOW_HOURS else f"{value:,.0f} h"


def ago(seconds: float) -> str:
    """How long ago, in one unit, so that a list stands still: `4 min ago`, `2 d ago`."""
    whole = max(0, int(seconds))
    for length_s, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if whole >= length_s:
            return f"{whole // length_s} {unit} ago"
    return "under 1 min ago"


def size(count: int) -> str:
    """Bytes for people: `512 B`, `3.4 MB`, `78.0 GB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < BYTES_STEP:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= BYTES_STEP
    return f"{value:,.1f} TB"


def memory(used: int, total: int | None) -> str:
    """Of a GPU, in the unit that its maker counts it in: `61 of 80 GiB`."""
    of = f" of {total / GIB:.0f}" if total else ""
    return f"{used / GIB:.0f}{of} GiB"


def skew(ahead_s: float) -> str:
    """How a node's clock stands to the server's: `clock 2.3 s ahead`."""
    return f"clock {duration(abs(ahead_s))} {'ahead' if ahead_s > 0 else 'behind'}"


def is_repeat(incidents: int) -> bool:
    """Whether so many incidents in 30 days make a node a repeat offender."""
    return incidents >= REPEAT_OFFENDER


def slug(text: str) -> str:
    """An id for an element out of any text: the same for the same text, and no other's."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def clock(at: datetime) -> str:
    """A wall time in UTC to the second; the page's script turns it into the reader's zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def seconds_ago(at: datetime, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds())


def limits(value: Limits) -> str:
    """`suspected after 10 s, hung after 15 s: …why`."""
    suspect, confirm = length(value.suspect_after_s), length(value.confirm_after_s)
    return f"suspected after {suspect}, hung after {confirm}: {value.why}"


def confidence(share: float) -> str:
    """How sure a verdict is, in words with its number."""
    degree = next(word for floor, word in _DEGREES if share >= floor)
    return f"{degree} ({share * 100:.0f}\u00a0%)"


def state(value: State | str) -> str:
    return str(value).replace("_", " ")


def kind(value: Kind) -> str:
    return _KINDS[value]


def condition(value: Condition) -> str:
    return _CONDITIONS[value]


def incident_state(value: IncidentState) -> str:
    return _INCIDENTS[value]


def incident_mark(value: IncidentState) -> str:
    return _INCIDENT_MARKS[value]


def link_mark(value: Link) -> str:
    return _LINK_MARKS[value]


def process_state(value: str) -> str:
    """`S (sleeping)`, so that nobody needs the letters by heart."""
    meaning = _PROCESS_STATES.get(value, "")
    if not meaning or meaning == value:
        return value or "unknown"
    return f"{value} ({meaning})"


def group(name: str, description: str) -> str:
    """A process group by its name; PyTorch calls the one of all ranks `0` or `default_pg`."""
    if description == "default_pg" or name in ("", "default_pg"):
        return "default group"
    return f"group {name}" if name.isdecimal() else name


def plural(count: int, noun: str, many: str = "") -> str:
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def ranks_named(text: str) -> str:
    """`rank 5` or `ranks 5,13`, for sentences."""
    return f"rank {text}" if count(text) == 1 else f"ranks {text}"


def count(text: str) -> int:
    """How many ranks a text made by `ranges` holds; 0 for text that is none."""
    try:
        return ranges.size(text)
    except BadRangeError:
        return 0


def short_file(path: str, parts: int = 3) -> str:
    """The end of a file's path, which is what tells files apart: `…/utils/data/fetch.py`."""
    pieces = path.rsplit("/", parts)
    return path if len(pieces) <= parts else "…/" + "/".join(pieces[1:])
