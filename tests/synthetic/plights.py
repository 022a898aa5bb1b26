"""What a rank's process and stack look like in each condition: the evidence beside the counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import msgspec

from hangwatch_agent import wire
from hangwatch_server import process_states
from hangwatch_server.model import Activity, Condition, Link, StackFacts

ASLEEP = wire.ProcessFacts(state="S", main_cpu_share=0.0, threads=12)


@dataclass(frozen=True, slots=True)
class Plight:
    """Evidence of one rank; `conditions` are the words that are right for it."""

    process: wire.ProcessFacts = ASLEEP
    conditions: frozenset[Condition] = frozenset({Condition.UNKNOWN})
    activity: Activity | None = None  # None: no stack was taken
    where: str = ""
    detail: str = ""
    lock_holder: str = ""
    captures: int = 3
    link: Link = Link.LIVE
    is_destroyed: bool = False
    is_reported: bool = True  # False: no process of this rank was ever seen
    waits: tuple[wire.InitWait, ...] = ()
    is_new: bool = False  # a process that came after a restart: no group, no call yet
    gpu: wire.GpuFacts | None = None


def stack(plight: Plight, pid: int, age_s: float) -> StackFacts | None:
    if plight.activity is None:
        return None
    return StackFacts(
        pid=pid,
        age_s=age_s,
        where=plight.where,
        leaf=plight.where,
        activity=plight.activity,
        detail=plight.detail,
        lock_holder=plight.lock_holder,
        same_leaf_captures=plight.captures,
        same_leaf_s=5.0 * (plight.captures - 1),
    )


def silences_probe(process: wire.ProcessFacts) -> bool:
    """Whether the probe's thread cannot run either: its record is as old as the trouble."""
    is_held = process.is_gil_held or process.is_unresponsive
    return is_held or process.state in process_states.STOPPED


def _process(state: str = "S", **facts: object) -> wire.ProcessFacts:
    known = {"state": state, "main_cpu_share": 0.0, "threads": 12, **facts}
    return msgspec.convert(known, wire.ProcessFacts)


def _outside(activity: Activity, condition: Condition, where: str) -> Callable[[Random], Plight]:
    def make(rng: Random) -> Plight:
        share = rng.choice((0.0, 0.0, 0.99)) if activity is Activity.USER_CODE else 0.0
        return Plight(
            process=_process("R" if share else "S", main_cpu_share=share),
            conditions=frozenset({condition}),
            activity=activity,
            where=where,
            lock_holder="cache.py:31 in refill" if activity is Activity.LOCK else "",
            captures=rng.randint(1, 4),
        )

    return make


def _of_process(process: wire.ProcessFacts, *conditions: Condition) -> Callable[[Random], Plight]:
    return lambda _: Plight(process=process, conditions=frozenset(conditions))


def _gone(process: wire.ProcessFacts, *conditions: Condition) -> Callable[[Random], Plight]:
    return _of_process(process, *conditions)


OUTSIDE: dict[str, Callable[[Random], Plight]] = {
    "dataloader": _outside(
        Activity.DATALOADER, Condition.IN_DATALOADER, "train.py:88 in __getitem__"
    ),
    "user_code": _outside(Activity.USER_CODE, Condition.IN_USER_CODE, "train.py:41 in augment"),
    "lock": _outside(Activity.LOCK, Condition.IN_LOCK, "train.py:57 in log_metrics"),
    "compile": _outside(Activity.COMPILE, Condition.IN_COMPILE, "train.py:20 in main"),
    "checkpoint": _outside(Activity.CHECKPOINT, Condition.IN_CHECKPOINT, "save.py:12 in save"),
    "no_stack": _of_process(ASLEEP, Condition.UNKNOWN),
}
UNABLE: dict[str, Callable[[Random], Plight]] = {
    "gil_held": _of_process(
        _process("R", main_cpu_share=1.0, is_gil_held=True), Condition.GIL_HELD
    ),
    "stopped": _of_process(_process("T"), Condition.STOPPED),
    "uninterruptible": _of_process(_process("D", wchan="nfs4_wait"), Condition.UNINTERRUPTIBLE),
    "unresponsive": _of_process(_process("S", is_unresponsive=True), Condition.UNRESPONSIVE),
}
ENDED: dict[str, Callable[[Random], Plight]] = {
    "crashed": _gone(
        _process("gone", exit_code=1, exit_reason="uncaught RuntimeError"), Condition.EXITED
    ),
    "killed": _gone(_process("gone", exit_signal=9), Condition.KILLED),
    "out_of_memory": _gone(
        _process("gone", exit_signal=9, exit_reason="oom_kill"), Condition.KILLED
    ),
    "gone_without_cause": _gone(_process("gone"), Condition.EXITED, Condition.KILLED),
    "exited_early": _gone(_process("gone", exit_code=0), Condition.EXITED, Condition.FINISHED),
    "left_training": lambda _: Plight(
        conditions=frozenset({Condition.FINISHED}),
        activity=Activity.SHUTDOWN,
        where="train.py:99 in main",
        is_destroyed=True,
    ),
}
ALONE = {**OUTSIDE, **UNABLE, **ENDED}  # plights of one rank that stops making calls
