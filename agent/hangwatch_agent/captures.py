"""Carries out one TakeCapture: which processes to read, in which order, and what goes into a part.

Only tracked ranks and their descendants are ever read. Every target gets a part, if only with the
reason why it has nothing to show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from hangwatch_agent import dumps, logs, recorder, stacks, wire
from hangwatch_agent.errors import DumpError, SocketError
from hangwatch_agent.node import Node
from hangwatch_agent.offspring import Child
from hangwatch_agent.process import GONE, Identity
from hangwatch_agent.sources import Sources
from hangwatch_agent.stacks import Stacks, Subject
from hangwatch_agent.tracked import Tracked

MAX_TARGETS = wire.MAX_RANKS_PER_NODE
MAX_DEADLINE_S = 120.0
LOOK_TIMEOUT_S = 5.0
Deliver = Callable[[wire.CapturePart], Awaitable[None]]
MAX_CHILDREN = 16  # stacks of loader workers repeat each other


@dataclass(frozen=True)
class Taken:
    """Part of a capture, or the reason why it is missing."""

    stacks: tuple[wire.ProcessStacks, ...] = ()
    entries: tuple[wire.GroupEntries, ...] = ()
    reason: str = ""
    remedy: str = ""


class Captures:
    """Takes captures on one node."""

    def __init__(self, node: Node, stacks: Stacks, sources: Sources | None = None) -> None:
        self._node = node
        self._stacks = stacks
        self._sources = sources or Sources(is_on=False)

    async def take(self, command: wire.TakeCapture, deliver: Deliver) -> None:
        """Read all targets within the command's deadline; each part is delivered as it comes."""
        deadline_s = min(max(command.deadline_s, 1.0), MAX_DEADLINE_S)
        async with asyncio.TaskGroup() as group:
            for target in dict.fromkeys(command.targets[:MAX_TARGETS]):
                group.create_task(self._one(command, target, deadline_s, deliver))

    async def look(self, item: Tracked, name: str, *, with_children: bool) -> wire.CapturePart:
        """The stacks of one rank for `sampling`; `name` tells this look from others."""
        started_s = asyncio.get_running_loop().time()
        subjects = [Subject(item.identity, "main", is_python=True)]
        subjects += self._children(item) if with_children else []
        found = await self._read(subjects, False, LOOK_TIMEOUT_S)
        return wire.CapturePart(
            capture=name,
            launch=item.launch.key,
            rank=item.candidate.rank,
            pid=item.identity.pid,
            age_s=asyncio.get_running_loop().time() - started_s,
            stacks=found.stacks,
            process=item.process.as_captured(item.facts),
            reason=found.reason,
            remedy=found.remedy,
        )

    async def threads_of(self, identity: Identity) -> tuple[wire.Thread, ...]:
        """The threads of a process that may turn out to be a rank; () if they cannot be read."""
        subject = Subject(identity, "main", is_python=True)
        taken = await self._stacks.take(subject, native=False, timeout_s=LOOK_TIMEOUT_S)
        return taken.threads

    async def _one(
        self,
        command: wire.TakeCapture,
        target: wire.Target,
        deadline_s: float,
        deliver: Deliver,
    ) -> None:
        try:
            part = await self._part(command, target, deadline_s)
        except Exception as error:
            # Task boundary: one rank's failure must not cost the others' parts.
            logs.exception("capture_failed", capture=command.capture, rank=target.rank)
            part = _empty(command, target, 0, f"the agent failed: {type(error).__name__}")
        await deliver(part)

    async def _part(
        self, command: wire.TakeCapture, target: wire.Target, deadline_s: float
    ) -> wire.CapturePart:
        item = self._node.find(target.launch, target.rank)
        if item is None:
            return _empty(command, target, 0, "this node follows no such rank")
        if item.facts.state == GONE:
            return _empty(command, target, item.identity.pid, "the process has gone", item.facts)
        started_s = asyncio.get_running_loop().time()
        found, dumped = Taken(), Taken()
        if wire.CaptureKind.STACKS in command.kinds:
            found = await self._take_stacks(item, command.native, deadline_s)
        if wire.CaptureKind.RECORDER in command.kinds:
            spent_s = asyncio.get_running_loop().time() - started_s
            dumped = await self._take_entries(item, max(1.0, deadline_s - spent_s))
        return wire.CapturePart(
            capture=command.capture,
            launch=target.launch,
            rank=target.rank,
            pid=item.identity.pid,
            age_s=0.0,
            stacks=found.stacks,
            entries=dumped.entries,
            process=item.process.as_captured(item.facts),
            reason="; ".join(filter(None, (found.reason, dumped.reason))),
            remedy="; ".join(filter(None, (found.remedy, dumped.remedy))),
            sources=await self._sources.of(item.identity, found.stacks),
        )

    async def _take_stacks(self, item: Tracked, native: bool, timeout_s: float) -> Taken:
        subjects = [Subject(item.identity, "main", is_python=True), *self._children(item)]
        item.process.readers += native
        try:
            return await self._read(subjects, native, timeout_s)
        finally:
            item.process.readers -= native

    async def _read(self, subjects: list[Subject], native: bool, timeout_s: float) -> Taken:
        results = await asyncio.gather(
            *(
                self._stacks.take(
                    subject, native=native and subject.role == "main", timeout_s=timeout_s
                )
                for subject in subjects
            )
        )
        main = results[0]
        return Taken(
            stacks=tuple(results),
            reason="" if main.threads else main.reason,
            remedy="" if main.threads else main.remedy,
        )

    @staticmethod
    def _children(item: Tracked) -> list[Subject]:
        worth = [child for child in item.process.offspring.known.values() if _is_worth(child)]
        return [
            Subject(
                Identity(child.stat.pid, child.stat.start_ticks, item.identity.uid),
                child.role,
                child.is_python,
                child.stat.name,
            )
            for child in worth[:MAX_CHILDREN]
        ]

    async def _take_entries(self, item: Tracked, timeout_s: float) -> Taken:
        """Over the worker socket; where that gives nothing, by the dump pipe if there is one."""
        path = item.socket
        groups = item.translated.groups if item.translated else ()
        environ = self._node.environ(item)
        has_pipe = dumps.has_pipe(environ)
        taken = Taken(
            reason="this rank has no worker socket to ask for recorder entries",
            remedy="start the job with `hangwatch run`; it needs torch 2.5 or newer",
        )
        end_s = asyncio.get_running_loop().time() + timeout_s
        if path is not None:
            limit_s = timeout_s / 2 if has_pipe else timeout_s
            try:
                return Taken(entries=await recorder.entries(path, item.identity, groups, limit_s))
            except SocketError as error:
                taken = Taken(
                    reason=f"no recorder entries: {error}",
                    remedy="a stopped process cannot answer; its stack can still be read",
                )
        if not has_pipe:
            return taken
        left_s = max(1.0, end_s - asyncio.get_running_loop().time())
        return await self._dump(item, environ, groups, left_s)

    async def _dump(
        self,
        item: Tracked,
        environ: Mapping[str, str],
        groups: tuple[wire.GroupInfo, ...],
        timeout_s: float,
    ) -> Taken:
        identity = item.identity
        subject = dumps.Subject(item.candidate.rank, identity.pid, identity.uid, environ)
        try:
            found = await dumps.dump(subject, self._node.root_of(item), timeout_s)
        except DumpError as error:
            return Taken(
                reason=f"no recorder entries by {dumps.PIPE_NAME}: {error}",
                remedy="the pipe needs torch's heartbeat monitor and its recorder to be on",
            )
        return Taken(entries=recorder.match(found.entries, groups or _groups_of(item, found)))


def _groups_of(item: Tracked, found: dumps.Dump) -> tuple[wire.GroupInfo, ...]:
    """The groups that a dump itself names, for a rank without a probe."""
    key = item.launch.key
    return tuple(
        wire.GroupInfo(
            gid=wire.gid_of(key, name, members, 1),
            launch=key,
            name=name,
            description="",
            backend="nccl",
            ranks=members,
        )
        for name, members in found.ranks.items()
    )


def _is_worth(child: Child) -> bool:
    return stacks.is_worth_reading(child.role, child.is_python)


def _empty(
    command: wire.TakeCapture,
    target: wire.Target,
    pid: int,
    reason: str,
    facts: wire.ProcessFacts | None = None,
) -> wire.CapturePart:
    return wire.CapturePart(
        capture=command.capture,
        launch=target.launch,
        rank=target.rank,
        pid=pid,
        age_s=0.0,
        process=facts,
        reason=reason,
    )
