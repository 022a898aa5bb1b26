"""Looks now and then at the stacks of ranks that have no probe: the only sight there is of them.

One rank at a time, rarely while the node's ranks move, often once one of them does not, and never
for more than a fixed share of one core, which is measured and not assumed. What the stacks mean is
for the server to say.
"""

from __future__ import annotations

import hashlib
import resource
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hangwatch_agent import rhythm, wire
from hangwatch_agent.captures import Captures
from hangwatch_agent.discover import RUN_DIR_NAME
from hangwatch_agent.node import Node
from hangwatch_agent.tracked import Tracked

CALM_S = 6.0  # between two looks at this node: eight ranks are each seen every 48 s
QUICK_S = 3.0  # between two looks at one rank of a job in which something stands still
QUIET_S = 3.0  # its main thread has not run at all
SHARE = 0.005  # of a core, as much as the rest of the agent takes for eight ranks
MOST_S = 3.0  # saved up: about a hundred looks
FIRST_S = 1.0
TICK_S = 0.5
PROBE_GRACE_S = 60.0  # a rank under `hangwatch run` has no record until it imports torch

Key = tuple[str, int, int]  # launch, rank, pid


class Budget:
    """CPU seconds that may be spent: a fixed share of a core, saved up to a limit."""

    def __init__(self) -> None:
        self.left_s = FIRST_S
        self._at_s: float | None = None

    def earn(self, now_s: float) -> None:
        if self._at_s is not None:
            self.left_s = min(MOST_S, self.left_s + SHARE * (now_s - self._at_s))
        self._at_s = now_s

    def pay(self, spent_s: float) -> None:
        self.left_s -= spent_s


@dataclass(frozen=True)
class Subject:
    """A rank that may be looked at."""

    key: Key
    is_quiet: bool  # its main thread has not run for some seconds


@dataclass
class _Seen:
    at_s: float
    stack: str = ""
    is_repeated: bool = False


@dataclass
class Pace:
    """Which rank to look at next, if any."""

    budget: Budget = field(default_factory=Budget)
    _seen: dict[Key, _Seen] = field(default_factory=dict)
    _last_s: float = float("-inf")

    def next(self, subjects: Iterable[Subject], now_s: float) -> Subject | None:
        """The rank that is due; None while nothing is, or while the budget is spent.

        1. While calm the rank that was not seen for longest, every CALM_S. 2. Every QUICK_S each
        rank of a job of which one rank here is quiet, or stood at the same place twice: the latter
        is common in good health, so that it may use up only half of what is saved.
        """
        known = {subject.key: subject for subject in subjects}
        self._seen = {key: seen for key, seen in self._seen.items() if key in known}
        self.budget.earn(now_s)
        if not known or self.budget.left_s <= 0:
            return None
        oldest = min(known, key=lambda key: (self._seen_s(key), key))
        if now_s - self._last_s >= CALM_S or oldest not in self._seen:
            return known[oldest]
        hurried = self._hurried(known)
        due = [key for key in known if key[0] in hurried and now_s - self._seen_s(key) >= QUICK_S]
        return known[min(due, key=lambda key: (self._seen_s(key), key))] if due else None

    def saw(self, key: Key, stack: str, now_s: float, spent_s: float) -> None:
        """A look at `key` was taken; `stack` is the same text for the same place, "" for none."""
        before = self._seen.get(key)
        is_repeated = before is not None and stack != "" and before.stack == stack
        self._seen[key] = _Seen(now_s, stack, is_repeated)
        self._last_s = now_s
        self.budget.pay(spent_s)

    def stands_still(self, subject: Subject) -> bool:
        """Whether its children are worth the cost as well."""
        seen = self._seen.get(subject.key)
        return subject.is_quiet or (seen is not None and seen.is_repeated)

    def _seen_s(self, key: Key) -> float:
        seen = self._seen.get(key)
        return seen.at_s if seen is not None else float("-inf")

    def _hurried(self, known: dict[Key, Subject]) -> set[str]:
        launches = {key[0] for key, subject in known.items() if subject.is_quiet}
        if self.budget.left_s > MOST_S / 2:
            launches |= {key[0] for key, seen in self._seen.items() if seen.is_repeated}
        return launches


class Sampler:
    """Takes the looks and hands them on."""

    def __init__(
        self,
        node: Node,
        captures: Captures,
        send: Callable[[wire.CapturePart], None],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._node = node
        self._captures = captures
        self._send = send
        self._is_wanted = is_wanted
        self._pace = Pace()
        self._name = secrets.token_hex(3)
        self._number = 0

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if self._is_wanted():
                await self.turn(time.monotonic())
            await rhythm.rest(TICK_S)

    async def turn(self, now_s: float) -> None:
        """One look, if one is due."""
        if await self._look_at_doubtful(now_s):
            return
        found = {_key(item): item for item in self._node.tracked if _is_bare(item, now_s)}
        subjects = [Subject(key, _is_quiet(item)) for key, item in found.items()]
        subject = self._pace.next(subjects, now_s)
        if subject is None:
            return
        self._number += 1
        before_s = _cpu_s()
        part = await self._captures.look(
            found[subject.key],
            f"s{self._name}-{self._number}",
            with_children=self._pace.stands_still(subject),
        )
        # All of the agent's own work meanwhile is counted too: rather too much than too little.
        self._pace.saw(subject.key, _place(part), now_s, _cpu_s() - before_s)
        if any(process.threads for process in part.stacks):
            self._send(part)

    async def _look_at_doubtful(self, now_s: float) -> bool:
        """Look at a process that may be a rank, if there is one and the budget allows it."""
        identity = self._node.spawned.doubtful(now_s)
        if identity is None or self._pace.budget.left_s <= 0:
            return False
        before_s = _cpu_s()
        threads = await self._captures.threads_of(identity)
        self._node.spawned.judge(identity, threads, now_s)
        self._pace.budget.pay(_cpu_s() - before_s)
        return True


def _key(item: Tracked) -> Key:
    return item.launch.key, item.candidate.rank, item.identity.pid


def _is_bare(item: Tracked, now_s: float) -> bool:
    if item.record is not None or item.process.is_gone or item.process.state in "ZX":
        return False
    is_young = now_s - item.found_s < PROBE_GRACE_S
    return not (is_young and RUN_DIR_NAME in item.candidate.environ)


def _is_quiet(item: Tracked) -> bool:
    still_s = item.facts.main_still_s
    return item.facts.main_cpu_share == 0.0 if still_s is None else still_s >= QUIET_S


def _place(part: wire.CapturePart) -> str:
    """A short text of where the main thread stands; "" when it could not be read."""
    threads = part.stacks[0].threads if part.stacks else ()
    if not threads:
        return ""
    text = "\n".join(f"{frame.name}\0{frame.file}\0{frame.line}" for frame in threads[0].frames)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime + time.process_time()
