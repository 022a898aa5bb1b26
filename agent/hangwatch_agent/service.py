"""The node service: the loops that keep the node's state, the link and the captures going.

It decides nothing about ranks or hangs. Each loop stands on its own: a slow capture or an absent
server never holds up the watching.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Coroutine, Iterator

from hangwatch_agent import identity, logs, permissions, process, recorder, rhythm, wire
from hangwatch_agent.captures import Captures
from hangwatch_agent.enrolment import Credentials
from hangwatch_agent.errors import AgentError, SettingsError
from hangwatch_agent.gpu import Gpus
from hangwatch_agent.link import Address, Link, State
from hangwatch_agent.node import Node
from hangwatch_agent.ras import Collector
from hangwatch_agent.rundir import Lock
from hangwatch_agent.sampling import Sampler
from hangwatch_agent.settings import AgentSettings
from hangwatch_agent.sources import Sources
from hangwatch_agent.spool import Spool
from hangwatch_agent.stacks import Stacks
from hangwatch_agent.tracked import Tracked

POLL_S = rhythm.TICK_S
SCAN_S = 2.0
# A scan that takes t of CPU time is made every 400 t at most: 0.25 % of a core on any node. It may
# last far longer on a busy one, where scans would come far too seldom if that counted.
SCAN_SHARE = 400
PING_EVERY_S = 1.0
MAX_WAITING_CAPTURES = 32
CAPTURE_WORKERS = 4
RETRY_S = 5.0
MAX_FILES = 16_384


async def run(settings: AgentSettings) -> None:
    """Follow this node's ranks until SIGTERM or SIGINT; raise AgentError if that cannot begin."""
    if not settings.server:
        raise SettingsError("no server given: hangwatch agent --server http://HOST:PORT")
    logs.configure(settings.log_level, settings.log_format)
    _raise_file_limit()
    lock = Lock(settings.run_dir)
    try:
        await Service(settings).run()
    finally:
        lock.release()


class Service:
    """One agent's running parts."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._proc = process.default_proc()
        self._node = Node(
            self._proc,
            settings.run_dir,
            adopt=settings.adopt,
            boot_id=identity.boot_id(),
            resolve=identity.resolve,
        )
        self._spool = Spool(settings.spool, settings.spool_max_bytes)
        self._stacks = Stacks(
            self._proc,
            concurrency=settings.capture_concurrency,
            timeout_s=settings.capture_timeout_s,
            py_spy=permissions.find_py_spy(),
        )
        sources = Sources(is_on=settings.capture_source)
        self._captures = Captures(self._node, self._stacks, sources)
        self._gpus = Gpus()
        self._ras = Collector(
            self._proc,
            process.PROC,
            lambda: self._node.tracked,
            interval_s=settings.ras_interval_s,
        )
        self._waiting: asyncio.Queue[wire.TakeCapture] = asyncio.Queue(MAX_WAITING_CAPTURES)
        self._material: tuple[object, ...] = ()
        self._pidfds: dict[int, process.Process] = {}

    async def run(self) -> None:
        """Start everything, wait for the signal to stop, and take everything down again."""
        stop = asyncio.Event()
        self._gpus.start()
        with _signals(stop):
            problem = await self._stacks.self_check()
            if problem.reason:
                logs.warning("stacks_unavailable", why=problem.reason, remedy=problem.remedy)
            link = self._link(problem)
            sampler = Sampler(
                self._node, self._captures, link.send_sample, lambda: link.wants_samples
            )
            loops = [lambda: self._poll(link), self._scan, self._ping, self._ras.run, link.run]
            loops += [] if problem.reason else [sampler.run]
            loops += [lambda: self._capture(link)] * CAPTURE_WORKERS
            await _until(stop, [_lasting(loop) for loop in loops])
        for descriptor in list(self._pidfds):
            self._forget(descriptor)
        logs.info("stopped", node=self._settings.node)

    def _link(self, problem: permissions.Problem) -> Link:
        settings = self._settings
        hello = wire.Hello(
            protocol=wire.PROTOCOL,
            node=settings.node,
            version=identity.version(),
            boot_id=identity.boot_id(),
            stacks=problem.reason,
            stacks_remedy=problem.remedy,
            cpu_count=os.cpu_count() or 0,
            addresses=identity.addresses(),
        )
        given = Credentials(settings)
        return Link(
            Address(settings.server, given.token, settings.ca_file, given.refused),
            hello,
            self._spool,
            state=self._state,
            clock=identity.clock,
            on_capture=self._accept,
            on_ask_ras=self._ras.appoint,
            interval_s=settings.interval_s,
        )

    def _state(self) -> State:
        for item in self._node.tracked:
            item.gpu = self._gpus.of(item.identity.pid)
        translated = self._node.translate(time.monotonic_ns())
        return State(self._node.launches(), tuple(translated), self._ras.reports())

    async def _poll(self, link: Link) -> None:
        while True:
            self._node.poll(time.monotonic(), time.monotonic_ns())
            self._watch_exits(link)
            material = self._node.material()
            if material != self._material:
                self._material = material
                link.beat_now()
            await rhythm.rest(POLL_S)

    async def _scan(self) -> None:
        self._node.scan(time.monotonic())  # it reads every process, as those after it need not
        await rhythm.rest(SCAN_S)
        while True:
            before_s = time.thread_time()
            self._node.scan(time.monotonic())
            await rhythm.rest(scan_pause_s(time.thread_time() - before_s))

    async def _ping(self) -> None:
        """Ask the worker sockets of ranks whose probe fell silent; nobody else is disturbed."""
        while True:
            now_ns = time.monotonic_ns()
            silent = [item for item in self._node.tracked if _is_to_ping(item, now_ns)]
            answers = await asyncio.gather(
                *(recorder.ping(item.socket, item.identity) for item in silent if item.socket)
            )
            for item in self._node.tracked:
                if item not in silent:
                    item.socket_answers = None
            for item, answer in zip(silent, answers, strict=True):
                item.socket_answers = answer
            await rhythm.rest(PING_EVERY_S)

    def _accept(self, command: wire.TakeCapture) -> None:
        try:
            self._waiting.put_nowait(command)
        except asyncio.QueueFull:
            logs.warning("capture_refused", capture=command.capture, why="too many are waiting")

    async def _capture(self, link: Link) -> None:
        while True:
            command = await self._waiting.get()

            async def deliver(part: wire.CapturePart) -> None:
                # Waits for the disk, which the heartbeats must not.
                await asyncio.to_thread(self._spool.put, part, identity.clock())
                link.send_captures()

            await self._captures.take(command, deliver)
            logs.info("capture_taken", capture=command.capture, ranks=len(command.targets))

    def _watch_exits(self, link: Link) -> None:
        """Hold a pidfd per rank: its end is seen while the exit status can still be read."""
        watched = {id(item) for item in self._pidfds.values()}
        for item in self._node.tracked:
            if item.process.is_gone or id(item.process) in watched:
                continue
            descriptor = process.open_pidfd(item.identity, self._proc)
            if descriptor is not None:
                self._pidfds[descriptor] = item.process
                asyncio.get_running_loop().add_reader(descriptor, self._ended, descriptor, link)

    def _ended(self, descriptor: int, link: Link) -> None:
        self._pidfds[descriptor].note_exit()
        self._forget(descriptor)
        link.beat_now()

    def _forget(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        del self._pidfds[descriptor]
        os.close(descriptor)


def scan_pause_s(spent_s: float) -> float:
    """How long to wait after a scan that took `spent_s` of CPU time."""
    return max(SCAN_S, spent_s * SCAN_SHARE)


def _is_to_ping(item: Tracked, now_ns: int) -> bool:
    return not item.process.is_gone and item.socket is not None and item.is_silent(now_ns)


async def _lasting(loop: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run an endless loop, and begin it anew when it fails on something unforeseen."""
    while True:
        try:
            await loop()
        except AgentError:
            raise  # on purpose, and fit to be shown: the agent cannot go on
        except Exception:
            # Task boundary: what one job leaves behind must not end the watching of all others.
            logs.exception("loop_failed", retry_s=RETRY_S)
        await asyncio.sleep(RETRY_S)


def _raise_file_limit() -> None:
    """Allow as many descriptors as the hard limit does.

    Each rank takes one, and one full node reaches the usual soft limit of 1,024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _until(stop: asyncio.Event, loops: list[Coroutine[None, None, None]]) -> None:
    """Run `loops` until `stop`, or until one of them fails; that failure is raised plain."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(loop) for loop in loops]
            await stop.wait()
            for task in tasks:
                task.cancel()
    except ExceptionGroup as problems:
        raise problems.exceptions[0] from None


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
