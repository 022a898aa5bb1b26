"""The words of a finding: its summary, and what each culprit does. No decisions are made here."""

from __future__ import annotations

from collections.abc import Sequence

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.diagnose.blame import conditions
from hangwatch_server.diagnose.pending import ops
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.model import Condition, Culprit, GroupView, Kind, Shift

# What one does, and what several do.
_DOING = {
    Condition.EXITED: ("has exited", "have exited"),
    Condition.KILLED: ("was killed", "were killed"),
    Condition.NODE_LOST: (
        "is on a node that is not heard any more",
        "are on nodes that are not heard any more",
    ),
    Condition.STOPPED: (
        "is stopped (SIGSTOP or a debugger)",
        "are stopped (SIGSTOP or a debugger)",
    ),
    Condition.UNINTERRUPTIBLE: ("is in uninterruptible sleep", "are in uninterruptible sleep"),
    Condition.GIL_HELD: (
        "holds the interpreter lock in native code",
        "hold the interpreter lock in native code",
    ),
    Condition.IN_DATALOADER: ("is in its dataloader", "are in their dataloaders"),
    Condition.IN_CHECKPOINT: (
        "is writing or reading a checkpoint",
        "are writing or reading a checkpoint",
    ),
    Condition.IN_COMPILE: ("is compiling", "are compiling"),
    Condition.IN_LOCK: ("waits for a lock or queue", "wait for a lock or queue"),
    Condition.IN_USER_CODE: ("is in its own code", "are in their own code"),
    Condition.IN_COLLECTIVE: ("waits in another collective", "wait in another collective"),
    Condition.GPU_BUSY: ("waits for its GPU", "wait for their GPUs"),
    Condition.FINISHED: ("has left training", "have left training"),
    Condition.UNRESPONSIVE: ("does not answer", "do not answer"),
    Condition.UNKNOWN: (
        "is somewhere that cannot be seen",
        "are somewhere that cannot be seen",
    ),
}
_SEEMS = ("seems to have left training", "seem to have left training")
_IS_AT = ("is at", "are at")
# How a process ended comes in words of its own.
_ENDED = (("was ", "were "), ("is ", "are "), ("has ", "have "))
_MAX_NAMED = 8
NO_PID = 0  # of a rank that only a file tells of


def doing(culprit: Culprit, *, are_many: bool = False) -> str:
    """What a culprit does: "is in its dataloader: train.py:88 in __getitem__ (worker 831 …)".

    With `are_many` as said of several that do the same: "are in their dataloaders: …".
    """
    if culprit.condition in (Condition.EXITED, Condition.KILLED) and culprit.detail:
        ended = culprit.detail.removeprefix("it ")
        return _of_many(ended) if are_many else ended
    text = _DOING[culprit.condition][are_many]
    if culprit.detail == conditions.BY_LINE:
        text = _SEEMS[are_many]
    if culprit.condition is Condition.UNKNOWN and culprit.where:
        text = f"{_IS_AT[are_many]} {culprit.where}"
    elif culprit.where:
        text = f"{text}: {culprit.where}"
    if not culprit.detail:
        return text
    return f"{text} ({'each: ' if are_many else ''}{culprit.detail})"


def _of_many(ended: str) -> str:
    for one, many in _ENDED:
        if ended.startswith(one):
            return many + ended.removeprefix(one)
    return ended


def capital(text: str) -> str:
    """As a sentence begins."""
    return text[:1].upper() + text[1:]


def seconds(value_s: float) -> str:
    if value_s < 120:
        return f"{value_s:.0f} s"
    if value_s < 7200:
        return f"{value_s / 60:.0f} min"
    return f"{value_s / 3600:.1f} h"


def count(number: int) -> str:
    return "1 rank" if number == 1 else f"{number} ranks"


def who(culprits: Sequence[Culprit], all_ranks: Sequence[int]) -> str:
    """ "Rank 5 (node-b, pid 812)" or "Ranks 8-15 (node-b)"."""
    nodes = sorted({culprit.node for culprit in culprits if culprit.node})
    if len(all_ranks) == 1 and culprits:
        pid = f"pid {culprits[0].pid}" if culprits[0].pid is not None else "no process seen"
        inside = ", ".join([*nodes, *([pid] if culprits[0].pid != NO_PID else [])])
        return f"Rank {all_ranks[0]}" + (f" ({inside})" if inside else "")
    shown = ", ".join(nodes[:3]) + (", …" if len(nodes) > 3 else "")
    return f"Ranks {ranges.text(all_ranks)}" + (f" ({shown})" if shown else "")


def of_call(op: PendingOp, group: GroupView | None) -> str:
    """ "all_reduce #29 of dp-1"."""
    if op.form in (Form.RENDEZVOUS, Form.SEEN):
        return op.op
    return f"{ops.call_text(op)} of {ops.group_name(group)}"


def waited(number: int, stalled_s: float) -> str:
    if stalled_s >= wire.MAX_AGE_S:  # as of dumps, which tell no time
        return f"{count(number)} {'waits' if number == 1 else 'wait'} for it"
    verb = "has" if number == 1 else "have"
    return f"{count(number)} {verb} waited {seconds(stalled_s)}"


def summary(
    kind: Kind,
    op: PendingOp,
    group: GroupView | None,
    culprits: Sequence[Culprit],
    ranks: Sequence[int],
    victims: int,
    *,
    entered: int,
) -> str:
    """The verdict in one or two sentences; `entered` culprits are inside the call."""
    call = of_call(op, group)
    wait = waited(victims, op.stalled_s)
    if kind is Kind.INCOMPLETE_RENDEZVOUS:
        return _rendezvous(op, culprits, ranks, wait)
    if kind is Kind.DEADLOCK:
        return (
            f"Ranks {ranges.text(ranks)} wait for each other in a cycle that includes {call}; "
            f"{wait}."
        )
    if kind is Kind.MISMATCH:
        return f"{who(culprits, ranks)} {_disagree(ranks)} with the rest at {call}; {wait}."
    if op.form is Form.SEEN:
        return _seen(op, culprits, ranks, wait)
    if not ranks:
        known = f"No rank is known to be missing from {call}" if op.unplaced else ""
        all_in = f"{known or f'All ranks have entered {call}'} and none finishes; {wait}."
        return f"{all_in} No rank is known to be at fault."
    if entered:
        how = "entered" if entered == len(ranks) else "entered or never came to"
        text = f"{who(culprits, ranks)} {how} {call} and {_hold(ranks)} it up"
        return f"{text}; {wait}.{_and(culprits)}"
    if kind is Kind.UNMATCHED_P2P:
        waiter = min(op.have)
        half = "receive" if op.op == "send" else "send"
        text = f"{who(culprits, ranks)} never posted the {half} that rank {waiter} waits for in"
        return f"{text} {call}; {wait}.{_and(culprits)}"
    if ranks and set(ranks) <= set(op.unknown):
        verb = "is" if len(ranks) == 1 else "are"
        text = f"{who(culprits, ranks)} {verb} not known to have entered {call}"
        return f"{text}; {wait}.{_and(culprits)}"
    return f"{who(culprits, ranks)} never entered {call}; {wait}.{_and(culprits)}"


def _seen(op: PendingOp, culprits: Sequence[Culprit], ranks: Sequence[int], wait: str) -> str:
    """Of a job whose stacks are all that is known."""
    if ranks:
        verb = "is" if len(ranks) == 1 else "are"
        text = f"{who(culprits, ranks)} {verb} not inside {op.op}, and the others are"
        return f"{text}; {wait}.{_and(culprits)}"
    return (
        f"Every rank that can be seen waits inside a collective and none goes on: {op.detail}; "
        f"{wait}. Stacks alone do not tell who is to blame."
    )


def shift(found: Shift) -> str:
    """ "Rank 1 skipped one all_reduce 10 calls ago, at skipped_metric.py:19 in step"."""
    number = abs(found.calls)
    verb, extra = ("skipped", "") if found.calls > 0 else ("made", "extra ")
    what = f"one {extra}{found.op}" if number == 1 else f"{number} {extra}calls from {found.op} on"
    ago = "1 call ago" if found.ago == 1 else f"{found.ago} calls ago"
    place = f", at {found.where}" if found.where else ""
    return f"Rank {found.rank} {verb} {what} {ago}{place}."


def beside(ranks: Sequence[int]) -> str:
    """That there is a second cause, in the headline: to mend the first alone would not help."""
    return f"Apart from that, {ranges.agreeing(ranks, 'holds', 'hold')} others up too."


def tie(call: str, sides: Sequence[str], victims: int, stalled_s: float) -> str:
    """A mismatch without majority: no side is known to be right."""
    return (
        f"Ranks disagree at {call}: {' against '.join(sides)}; {waited(victims, stalled_s)}. "
        "No majority says which side is wrong."
    )


def _rendezvous(op: PendingOp, culprits: Sequence[Culprit], ranks: Sequence[int], wait: str) -> str:
    if not ranks:
        return f"All ranks are in {op.op} or past it, and it does not finish; {wait}."
    return f"{who(culprits, ranks)} never came to {op.op}; {wait}.{_and(culprits)}"


def _hold(ranks: Sequence[int]) -> str:
    return "holds" if len(ranks) == 1 else "hold"


def _disagree(ranks: Sequence[int]) -> str:
    return "disagrees" if len(ranks) == 1 else "disagree"


def _and(culprits: Sequence[Culprit]) -> str:
    """What the culprits do, one sentence per different doing."""
    alike: dict[str, list[Culprit]] = {}
    for culprit in culprits:
        alike.setdefault(doing(culprit), []).append(culprit)
    if len(culprits) == 1:
        return f" It {next(iter(alike))}."
    return "".join(f" {_together(group)}." for group in list(alike.values())[:_MAX_NAMED])


def _together(alike: Sequence[Culprit]) -> str:
    who_they_are = capital(ranges.named(culprit.rank for culprit in alike))
    return f"{who_they_are} {doing(alike[0], are_many=len(alike) > 1)}"
