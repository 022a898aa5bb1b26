"""What goes on in a healthy job besides its steps: each kind of pause, how often and how long.

Rates and lengths are of the order that the literature gives for large jobs: checkpoints around
every half hour with a median of 25 s, an evaluation an hour with a median of two minutes, steps of
1.5 to 4 times the usual length in one of five hundred.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server.model import Activity


@dataclass(frozen=True)
class Doing:
    """What a rank does before it enters its next call, as the kernel and a stack show it."""

    activity: Activity = Activity.USER_CODE
    leaf: str = ""  # "": another line whenever one looks
    cpu: float = 0.7
    state: str = "R"
    wchan: str = ""
    io_per_s: float = 0.0
    children: tuple[wire.ChildFacts, ...] = ()


@dataclass(frozen=True)
class Kind:
    """One kind of pause: it delays a rank's next call by `low_s` to `high_s`, log-uniformly."""

    name: str
    per_day: float
    low_s: float
    high_s: float
    doing: Doing
    is_for_all: bool = False  # every rank pauses, not one
    is_apart: bool = False  # half of the ranks go on in a group of their own meanwhile

    def length_s(self, dice: random.Random) -> float:
        return self.low_s * (self.high_s / self.low_s) ** dice.random()


def child(role: str, state: str, cpu: float, wchan: str = "") -> wire.ChildFacts:
    return wire.ChildFacts(pid=9, name=role, role=role, state=state, cpu_share=cpu, wchan=wchan)


WORK = Doing()
WAITS_FOR_BATCH = "dataloader.py:1132 in _try_get_data"
KINDS = (
    Kind("long step", 60, 2.0, 8.0, WORK),
    Kind("collection of garbage", 24, 1.0, 8.0, Doing(leaf="train.py:40 in collect", cpu=1.0)),
    Kind("pause in a lock", 12, 1.0, 8.0, Doing(Activity.LOCK, "log.py:8 in emit", 0.0, "S")),
    Kind(
        "checkpoint",
        48,
        10.0,
        60.0,
        Doing(Activity.CHECKPOINT, "", 0.3, "S", io_per_s=200e6),
    ),
    Kind(
        "checkpoint that waits for fsync",
        8,
        10.0,
        90.0,
        Doing(Activity.CHECKPOINT, "serialization.py:9 in _save", 0.0, "D", "wait_on_page_bit"),
    ),
    Kind("evaluation by half of the ranks", 24, 60.0, 900.0, WORK, is_apart=True),
    Kind("evaluation by all", 12, 30.0, 300.0, Doing(Activity.EVALUATION), is_for_all=True),
    Kind(
        "compilation again",
        6,
        20.0,
        200.0,
        Doing(
            Activity.COMPILE,
            "async_compile.py:3 in wait",
            0.01,
            "S",
            children=(child("compile", "R", 0.9),),
        ),
    ),
    Kind(
        "loader at work",
        30,
        3.0,
        90.0,
        Doing(
            Activity.DATALOADER,
            WAITS_FOR_BATCH,
            0.0,
            "S",
            children=(child("loader", "R", 0.8),),
        ),
    ),
    Kind(
        "loader waits for the network",
        20,
        1.0,
        12.0,
        Doing(
            Activity.DATALOADER,
            WAITS_FOR_BATCH,
            0.0,
            "S",
            children=(child("loader", "S", 0.0),),
        ),
    ),
    Kind(
        "loader on slow storage",
        10,
        5.0,
        100.0,
        Doing(
            Activity.DATALOADER,
            WAITS_FOR_BATCH,
            0.0,
            "S",
            children=(child("loader", "D", 0.0, "nfs_wait_bit_killable"),),
        ),
    ),
    Kind(
        "read from slow storage",
        10,
        5.0,
        100.0,
        Doing(Activity.USER_CODE, "data.py:5 in read", 0.0, "D", "rpc_wait_bit_killable"),
    ),
    Kind(
        "child process at work",
        6,
        10.0,
        200.0,
        Doing(
            Activity.USER_CODE,
            "subprocess.py:2011 in _try_wait",
            0.0,
            "S",
            "do_wait",
            children=(child("other", "R", 0.9),),
        ),
    ),
)
COMPILE_FIRST = Kind(
    "first step",
    0,
    60.0,
    300.0,
    Doing(
        Activity.COMPILE,
        "async_compile.py:3 in wait",
        0.02,
        "S",
        children=(child("compile", "R", 0.9),),
    ),
    is_for_all=True,
)
