"""What a culprit is doing: the operating system's facts first, then its stack.

Missing facts give `unknown`, never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hangwatch_agent.wire import ChildFacts, ProcessFacts
from hangwatch_server import kernel_waits, process_states
from hangwatch_server.diagnose import hardware, process
from hangwatch_server.diagnose.blame import leaving
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Activity, Condition, Link, RankView, StackFacts

_BY_ACTIVITY = {
    Activity.COLLECTIVE: Condition.IN_COLLECTIVE,
    Activity.DATALOADER: Condition.IN_DATALOADER,
    Activity.CHECKPOINT: Condition.IN_CHECKPOINT,
    Activity.COMPILE: Condition.IN_COMPILE,
    Activity.GPU: Condition.GPU_BUSY,
    Activity.LOCK: Condition.IN_LOCK,
    Activity.SHUTDOWN: Condition.FINISHED,
    Activity.MODEL_LOADING: Condition.IN_USER_CODE,
    Activity.EVALUATION: Condition.IN_USER_CODE,
    Activity.USER_CODE: Condition.IN_USER_CODE,
}
_DETAIL = {
    Activity.MODEL_LOADING: "it is loading a model",
    Activity.EVALUATION: "it is evaluating",
    Activity.GPU: "it waits for work on its GPU",
    Activity.RENDEZVOUS: "it waits in a rendezvous",
}


# The detail of a rank that has left training as far as its line tells.
BY_LINE = (
    "judged by its line, which is past the one where the others train; a later part of the same "
    "loop looks the same"
)


class State(NamedTuple):
    condition: Condition
    where: str = ""
    detail: str = ""


def of_rank(
    looked: Survey, rank: int, waiting: Sequence[StackFacts], *, is_queued: bool = False
) -> State:
    """The culprit's state; `waiting` are the stacks at hand of the ranks that wait for it."""
    view = looked.view(rank)
    if view is None or view.beat is None:
        return _unreported(view)
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
    by_process = _by_process(facts, fate, where)
    if by_process is not None:
        return by_process
    if stack is not None and stack.gil_holder:
        detail = f"{stack.gil_holder} keeps the interpreter lock and sleeps in native code"
        return State(Condition.GIL_HELD, where, detail)
    if view.beat.is_destroyed:
        return State(Condition.FINISHED, where, "it has destroyed its process groups")
    failed = hardware.words(view.beat)
    if failed:
        return State(Condition.UNKNOWN, where, failed)
    if is_queued:  # the call is in its queue, so the GPU holds it up, wherever the CPU is
        is_busy = hardware.is_busy(view.beat)
        busy = "its GPU is busy with something else and has not started the collective"
        detail = busy if is_busy else "its GPU has not started the collective"
        return State(Condition.GPU_BUSY, where, detail)
    if stack is not None and stack.activity is not Activity.UNKNOWN:
        return _by_stack(looked, rank, stack, facts, waiting)
    return State(Condition.UNKNOWN, where)


def _unreported(view: RankView | None) -> State:
    """A rank without a heartbeat; its node is known when an earlier server saw its process."""
    if view is None or not view.node:
        return State(Condition.UNKNOWN, detail="no process of it was ever seen")
    if view.link is Link.LIVE:
        return State(Condition.UNKNOWN, detail="its node does not report it any more")
    condition = Condition.NODE_LOST if view.link is Link.LOST else Condition.UNKNOWN
    return State(condition, detail="its node has not reported since this server started")


def stuck_child(facts: ProcessFacts) -> ChildFacts | None:
    """A child in uninterruptible sleep or stopped, loader workers first."""
    bad = [c for c in facts.children if c.state == "D" or c.state in process_states.STOPPED]
    return min(bad, key=lambda c: (c.role != "loader", c.pid)) if bad else None


def _by_process(facts: ProcessFacts, fate: Fate, where: str) -> State | None:
    if fate is Fate.STOPPED:
        return State(Condition.STOPPED, where)
    if facts.state == "D":
        asleep = f"it sleeps uninterruptibly{_in_kernel(facts.wchan)}"
        return State(Condition.UNINTERRUPTIBLE, where, asleep)
    if facts.is_gil_held:
        detail = "its threads answer only outside of Python: the interpreter lock is held"
        return State(Condition.GIL_HELD, where, detail)
    if facts.is_unresponsive:
        return State(Condition.UNRESPONSIVE, where, "its probe and its socket do not answer")
    return None


def _by_stack(
    looked: Survey,
    rank: int,
    stack: StackFacts,
    facts: ProcessFacts,
    waiting: Sequence[StackFacts],
) -> State:
    if stack.activity is Activity.GPU and looked.has_front(rank):
        detail = "it waits for its GPU, which has not finished a collective of its own"
        return State(Condition.IN_COLLECTIVE, stack.where, detail)
    condition = _BY_ACTIVITY.get(stack.activity, Condition.UNKNOWN)
    detail = stack.detail or _DETAIL.get(stack.activity, "")
    if condition is Condition.IN_DATALOADER:
        detail = _loader_detail(facts, detail)
    elif condition is Condition.IN_USER_CODE and _has_left(looked, rank, stack, waiting):
        return State(Condition.FINISHED, stack.where, BY_LINE)
    return State(condition, stack.where, detail)


def _has_left(looked: Survey, rank: int, stack: StackFacts, waiting: Sequence[StackFacts]) -> bool:
    beat = looked.beat(rank)
    if beat is None or not looked.is_idle(rank):
        return False
    return leaving.has_left(stack, beat.process, waiting)


def _in_kernel(wchan: str) -> str:
    """` in nfs_wait_bit_killable (waits for the NFS server)`."""
    if wchan in ("", "0"):
        return ""
    what = kernel_waits.words(wchan)
    return f" in {wchan} (waits for {what})" if what else f" in {wchan}"


def _loader_detail(facts: ProcessFacts, at: str) -> str:
    """Where its loader workers are (`at`, from their stacks) and what the kernel says of one."""
    child = stuck_child(facts)
    if child is not None:
        state = "D state" if child.state == "D" else "stopped state"
        stuck = f"worker {child.pid} is in {state}{_in_kernel(child.wchan)}"
        return f"{stuck}; {at}" if at else stuck
    loaders = [c for c in facts.children if c.role == "loader"]
    if len(loaders) == 1 and loaders[0].wchan not in ("", "0"):
        asleep = f"sleeps in {loaders[0].wchan}"
        return f"{at} and {asleep}" if at else f"worker {loaders[0].pid} {asleep}"
    return at
