"""Decides whom to ask and when, and keeps the newest answer of each launch.

RAS answers for a whole job, so one agent asks: that of the node which holds rank 0, or one that the
server appoints while that node is silent. Each launch is asked in a task of its own. A launch whose
ranks here all carry the probe is only asked while one of them stands still: the probe knows more.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hangwatch_agent import logs, procfs, rhythm, wire
from hangwatch_agent.errors import RasError
from hangwatch_agent.ras import address, answer, protocol, status, text
from hangwatch_agent.tracked import Tracked

TICK_S = 1.0
KEEP_S = 60.0  # an older answer says nothing of now
REST_FACTOR = 10.0  # an answer that took t is asked for again after 10 t at the earliest
MAX_REST_S = 300.0
MAX_FAILURES = 6  # the wait doubles with each, up to 64 times
STALL_S = 5.0
MAX_LAUNCHES = 64
# All processes of all jobs on a node may listen on the one port, and the kernel picks: the next try
# may reach another. One that takes long has asked the whole job, and is not repeated.
TRIES = 4
QUICK_S = 3.0


@dataclass(slots=True)
class Asked:
    """One launch: its newest answer, and when to ask again."""

    found: wire.RasReport | None = None
    answered_s: float = 0.0
    due_s: float = 0.0
    failures: int = 0
    problem: str = ""
    appointed_until_s: float = 0.0
    task: asyncio.Task[None] | None = field(default=None)


class Collector:
    """Keeps asking; `reports` may be called at any time and never waits."""

    def __init__(
        self,
        proc: procfs.Procfs,
        proc_root: Path,
        tracked: Callable[[], Sequence[Tracked]],
        *,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: float = protocol.ANSWER_TIMEOUT_S,
    ) -> None:
        self._proc = proc
        self._proc_root = proc_root
        self._tracked = tracked
        self._interval_s = interval_s
        self._clock = clock
        self._timeout_s = timeout_s
        self._asked: dict[str, Asked] = {}

    def appoint(self, command: wire.AskRas) -> None:
        """The server asks this agent to speak for launches whose rank 0 is out of its reach."""
        until_s = self._clock() + min(max(command.for_s, 0.0), MAX_REST_S)
        here = {item.launch.key for item in self._tracked()}
        for launch in command.launches[:MAX_LAUNCHES]:
            if launch in here:
                self._asked.setdefault(launch, Asked()).appointed_until_s = until_s

    def reports(self) -> tuple[wire.RasReport, ...]:
        """The newest answer of each launch, with its age now."""
        now_s = self._clock()
        return tuple(
            msgspec.structs.replace(item.found, age_s=max(0.0, now_s - item.answered_s))
            for item in self._asked.values()
            if item.found is not None and now_s - item.answered_s <= KEEP_S
        )

    async def run(self) -> None:
        """Ask whoever is due, for as long as the agent lives."""
        if self._interval_s <= 0:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            while True:
                self._begin(group)
                await rhythm.rest(TICK_S)

    def _begin(self, group: asyncio.TaskGroup) -> None:
        now_s = self._clock()
        by_launch: dict[str, list[Tracked]] = {}
        for item in self._tracked():
            if not item.process.is_gone:
                by_launch.setdefault(item.launch.key, []).append(item)
        for launch in [launch for launch in self._asked if launch not in by_launch]:
            if self._asked[launch].task is None:
                del self._asked[launch]
        for launch, ranks in list(by_launch.items())[:MAX_LAUNCHES]:
            asked = self._asked.setdefault(launch, Asked(due_s=now_s + self._spread_s(launch)))
            is_ours = now_s < asked.appointed_until_s or _holds_first(ranks)
            if asked.task is None and now_s >= asked.due_s and is_ours and is_wanted(ranks):
                asked.task = group.create_task(self._one(launch, asked, ranks))

    def _spread_s(self, launch: str) -> float:
        """Jobs that start at the same moment on many nodes are not asked in step."""
        return self._interval_s * (zlib.crc32(launch.encode()) % 100) / 100

    async def _one(self, launch: str, item: Asked, ranks: Sequence[Tracked]) -> None:
        started_s = self._clock()
        try:
            number = 1 if item.found is None else item.found.number + 1
            found = await self._ask(launch, ranks, number)
        except RasError as error:
            self._fail(launch, item, str(error))
        except Exception:
            # Task boundary: one job's answer must not end the asking of all others.
            logs.exception("ras_failed", launch=launch)
            self._fail(launch, item, "the agent failed")
        else:
            item.failures, item.problem = 0, ""
            item.found, item.answered_s = found, self._clock()
        finally:
            spent_s = self._clock() - started_s
            rest_s = max(self._interval_s * 2**item.failures, spent_s * REST_FACTOR)
            item.due_s = self._clock() + min(rest_s, max(MAX_REST_S, self._interval_s))
            item.task = None

    def _fail(self, launch: str, item: Asked, why: str) -> None:
        item.failures = min(item.failures + 1, MAX_FAILURES)
        if why != item.problem:
            logs.debug("ras_not_answered", launch=launch, why=why)
        item.problem = why

    async def _ask(self, launch: str, ranks: Sequence[Tracked], number: int) -> wire.RasReport:
        first = min(ranks, key=lambda item: item.candidate.rank)
        endpoint = await asyncio.to_thread(self._endpoint, first)
        pids = frozenset(pid for item in ranks for pid in item.own_pids)
        for left in reversed(range(TRIES)):
            started_s = self._clock()
            try:
                got = await protocol.ask(endpoint, self._timeout_s)
                return await asyncio.to_thread(_read, got, launch, pids, number)
            except RasError:
                if not left or self._clock() - started_s > QUICK_S:
                    raise
        raise AssertionError("the last try returns or raises")

    def _endpoint(self, item: Tracked) -> protocol.Endpoint:
        """Reads files of /proc that grow with the node, hence in a thread of its own."""
        pid = item.identity.pid
        environ = {**self._proc.environ(pid), **item.candidate.environ}
        where = address.endpoint(environ)
        if where is None:
            raise RasError("NCCL RAS is switched off by NCCL_RAS_ENABLE")
        if not address.shares_network(self._proc_root, pid):
            raise RasError("NCCL RAS listens in another network namespace")
        owners = address.listeners(self._proc_root, pid, where.port)
        if not owners:
            raise RasError("nobody listens at the address of NCCL RAS")
        if owners != {item.identity.uid}:
            raise RasError("another user listens at the address of NCCL RAS")
        return where


def _read(got: protocol.Answer, launch: str, pids: frozenset[int], number: int) -> wire.RasReport:
    found = answer.parse(got.data) if got.is_json else text.parse(got.data)
    known = status.pids(found)
    if known and not known & pids:
        raise RasError("what answers is the NCCL RAS of another job on this node")
    return status.report(found, launch, number, 0.0)


def is_wanted(ranks: Sequence[Tracked]) -> bool:
    """Whether RAS can tell more of these ranks than their probes do."""
    for item in ranks:
        payload = item.record.payload if item.record else None
        if payload is None or not payload.initialised:
            return True
        stalls = [payload.at_ns - group.moved_ns for group in payload.groups if group.counter]
        if stalls and min(stalls) > STALL_S * 1e9:
            return True
    return False


def _holds_first(ranks: Sequence[Tracked]) -> bool:
    return any(item.candidate.rank == 0 for item in ranks)
