"""What a culprit is doing: the operating system's facts first, then its stack (DESIGN 5).

Missing facts give `unknown`, never a guess.
"""

from __future__ import annotations

from typing import NamedTuple

from hangwatch_agent.wire import ChildFacts, ProcessFacts
from hangwatch_server.diagnose import process, survey
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Activity, Condition, Link, StackFacts

_BY_ACTIVITY = {
    Activity.COLLECTIVE: Condition.IN_COLLECTIVE,
    Activity.DATALOADER: Condition.IN_DATALOADER,
    Activity.CHECKPOINT: Condition.IN_CHECKPOINT,
    Activity.COMPILE: Condition.IN_COMPILE,
    Activity.LOCK: Condition.IN_LOCK,
    Activity.SHUTDOWN: Condition.FINISHED,
    Activity.MODEL_LOADING: Condition.IN_USER_CODE,
    Activity.EVALUATION: Condition.IN_USER_CODE,
    Activity.USER_CODE: Condition.IN_USER_CODE,
}
_DETAIL = {
    Activity.MODEL_LOADING: "it is loading a model",
    Activity.EVALUATION: "it is evaluating",
    Activity.RENDEZVOUS: "it waits in a rendezvous",
}


class State(NamedTuple):
    condition: Condition
    where: str = ""
    detail: str = ""


def of_rank(looked: Survey, rank: int, *, waiters_in_ddp: bool, is_queued: bool = False) -> State:
    """The culprit's state; `waiters_in_ddp` says that others wait inside DDP's own collectives."""
    view = looked.view(rank)
    if view is None or view.beat is None:
        return State(Condition.UNKNOWN, detail="no process of it was ever seen")
    facts = view.beat.process
    fate = looked.fate(rank)
    stack = looked.recent_stack(rank)
    where = stack.where if stack is not None else ""
    if fate is Fate.GONE:
        condition = Condition.KILLED if process.was_killed(facts) else Condition.EXITED
        return State(condition, detail=f"it {process.exit_text(facts)}")
    if fate is Fate.SILENT:
        detail = f"its node has been silent for {view.age_s:.0f} s"
        lost = Condition.NODE_LOST if view.link is Link.LOST else Condition.UNKNOWN
        return State(lost, where, detail)
    by_process = _by_process(facts, where)
    if by_process is not None:
        return by_process
    if view.beat.is_destroyed:
        return State(Condition.FINISHED, where, "it has destroyed its process groups")
    if stack is not None and stack.activity is not Activity.UNKNOWN:
        return _by_stack(looked, rank, stack, facts, waiters_in_ddp)
    if is_queued:
        return State(Condition.GPU_BUSY, where, "its GPU has not started the collective")
    return State(Condition.UNKNOWN, where)


def stuck_child(facts: ProcessFacts) -> ChildFacts | None:
    """A child in uninterruptible sleep or stopped, loader workers first."""
    bad = [c for c in facts.children if c.state == "D" or c.state in process.STOPPED_STATES]
    return min(bad, key=lambda c: (c.role != "loader", c.pid)) if bad else None


def _by_process(facts: ProcessFacts, where: str) -> State | None:
    if facts.state in process.STOPPED_STATES:
        return State(Condition.STOPPED, where, "it was stopped by a signal")
    if facts.state == "D":
        wchan = f" in {facts.wchan}" if facts.wchan else ""
        return State(Condition.UNINTERRUPTIBLE, where, f"it sleeps uninterruptibly{wchan}")
    if facts.is_gil_held:
        detail = "its threads answer only outside of Python: the interpreter lock is held"
        return State(Condition.GIL_HELD, where, detail)
    if facts.is_unresponsive:
        return State(Condition.UNRESPONSIVE, where, "its probe and its socket do not answer")
    return None


def _by_stack(
    looked: Survey, rank: int, stack: StackFacts, facts: ProcessFacts, waiters_in_ddp: bool
) -> State:
    condition = _BY_ACTIVITY.get(stack.activity, Condition.UNKNOWN)
    detail = stack.detail or _DETAIL.get(stack.activity, "")
    if condition is Condition.IN_DATALOADER:
        detail = _child_detail(facts) or detail
    elif condition is Condition.IN_LOCK and stack.lock_holder:
        detail = f"the lock seems to be held at {stack.lock_holder}"
    elif condition is Condition.IN_USER_CODE and waiters_in_ddp and not survey.waits_in_ddp(stack):
        if looked.is_idle(rank) and _is_past_training(stack, facts):
            return State(Condition.FINISHED, stack.where, "it seems to have left training")
        detail = detail or "it may have left training: the others wait inside DDP"
    return State(condition, stack.where, detail)


def _is_past_training(stack: StackFacts, facts: ProcessFacts) -> bool:
    """Nothing shows that it waits for data: asleep by a timer, or the kernel does not say where."""
    is_untold = facts.wchan in ("", "0")
    return is_untold or "sleep" in facts.wchan or stack.where.endswith(" in <module>")


def _child_detail(facts: ProcessFacts) -> str:
    child = stuck_child(facts)
    if child is not None:
        wchan = f" in {child.wchan}" if child.wchan else ""
        state = "D state" if child.state == "D" else "stopped state"
        return f"worker {child.pid} is in {state}{wchan}"
    loaders = [c for c in facts.children if c.role == "loader"]
    if len(loaders) == 1 and loaders[0].wchan not in ("", "0"):
        return f"worker {loaders[0].pid} sleeps in {loaders[0].wchan}"
    return ""
