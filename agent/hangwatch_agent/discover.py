"""Which processes of this node are ranks: from probe records, and bare ones from /proc.

A record is job-user input. It is believed only where its file's owner is every uid of the process
it names and the start times agree: nobody can point the agent at a process that is not theirs. An
environment is a guess until torch itself has said the rank: a descendant of a rank (loader worker,
resource tracker) and the parent of ranks (mp.spawn's launcher) inherit RANK and are not ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hangwatch_agent import children, procfs, table, wire
from hangwatch_agent.payload import RecordPayload
from hangwatch_agent.process import Identity
from hangwatch_agent.records import Record

MAX_STACKS = 10_000  # processes remembered, of which a node sees some hundreds per job
NEW_S = 10.0
RUN_DIR_NAME = "HANGWATCH_RUN_DIR"

Image = tuple[int, int, int]  # pid, start and addresses: another once it runs another program


@dataclass(frozen=True)
class Candidate:
    """A process that may be a rank, and what speaks for it."""

    identity: Identity
    rank: int
    world_size: int
    local_rank: int
    is_certain: bool
    environ: Mapping[str, str]
    arguments: tuple[str, ...]
    ancestors: tuple[int, ...]
    record: Path | None = None  # None: bare


@dataclass(frozen=True)
class Refusal:
    """A record that is not believed, and why, in words for the log."""

    path: Path
    why: str
    is_dead: bool = False  # its process is gone


def identify(record: Record, processes: table.Table, proc: procfs.Procfs) -> Identity | Refusal:
    """The process of this node that a record speaks of, or why it is refused."""
    pid = _host_pid(record, processes, proc)
    if pid is None:
        return Refusal(record.path, "no process has its pid and start time", is_dead=True)
    uids = proc.uids(pid)
    if uids != {record.uid}:
        owners = ",".join(map(str, sorted(uids)))
        return Refusal(
            record.path, f"owned by uid {record.uid}, but process {pid} runs as uid {owners}"
        )
    return Identity(pid=pid, start_ticks=record.start_ticks, uid=record.uid)


def _host_pid(record: Record, processes: table.Table, proc: procfs.Procfs) -> int | None:
    """The pid in our namespace: the same, or that of a container's process by NSpid and start."""
    stat = proc.stat(record.pid)
    if stat is not None and stat.start_ticks == record.start_ticks:
        return record.pid
    for other in processes.by_start.get(record.start_ticks, ()):
        pids = procfs.parse_namespace_pids(proc.status(other.pid))
        if len(pids) > 1 and pids[-1] == record.pid:
            return other.pid
    return None


def from_record(
    record: Record, identity: Identity, processes: table.Table, proc: procfs.Procfs
) -> Candidate | None:
    """The candidate a believed record describes; None while it knows no rank."""
    payload = record.payload
    if payload is None:
        return None
    rank, world_size = _rank_and_world(payload)
    if not _is_possible(rank, world_size):
        return None
    table.add_with_ancestors(processes, proc, identity.pid)
    # A spawned rank's command line names multiprocessing, not the script.
    script = payload.script
    arguments = ("python", script) if script else proc.arguments(identity.pid)
    return Candidate(
        identity=identity,
        rank=rank,
        world_size=world_size,
        local_rank=payload.local_rank,
        is_certain=payload.certain,
        environ=payload.environment,
        arguments=arguments,
        ancestors=processes.ancestors(identity.pid),
        record=record.path,
    )


def _rank_and_world(payload: RecordPayload) -> tuple[int, int]:
    """The record's rank, or what an init call that is still waiting was given."""
    if payload.rank >= 0:
        return payload.rank, payload.world_size
    for wait in payload.waits:
        if wait.rank is not None:
            return wait.rank, wait.expected or payload.world_size
    return -1, payload.world_size


class BareFinder:
    """Finds ranks without a record, reading each new process's environment once.

    A forked child may outlive its rank; then no ancestor shows whose RANK it has inherited. But a
    fork copies the addresses of its parent, which exec chooses at random: who has those of an
    older process was forked by it, and is no rank.
    """

    def __init__(self, proc: procfs.Procfs, run_dir: Path, adopt: bool) -> None:
        self._proc = proc
        self._run_dir = str(run_dir)
        self._adopt = adopt
        self._seen: dict[Image, Candidate | None] = {}
        self._by_stack: dict[int, Identity] = {}  # the oldest process with that address

    def find(self, processes: table.Table) -> list[Candidate]:
        """Candidates among all processes of `processes`; forgets those that are gone."""
        seen: dict[Image, Candidate | None] = {}
        new_ticks = max(processes.by_start, default=0) - NEW_S * procfs.TICKS_PER_S
        for stat in processes.by_pid.values():
            image = stat.pid, stat.start_ticks, stat.stack_start
            candidate = self._seen.get(image)
            # A fork shows its parent's environment until it execs: look again while new.
            is_doubtful = image not in self._seen or stat.start_ticks > new_ticks
            if candidate is None and is_doubtful:
                candidate = self._inspect(stat, processes)
            seen[image] = candidate
        self._seen = seen
        return [candidate for candidate in seen.values() if candidate is not None]

    def _inspect(self, stat: procfs.Stat, processes: table.Table) -> Candidate | None:
        if "python" not in stat.name and not children.is_python(
            (), self._proc.executable(stat.pid)
        ):
            return None
        environ = self._proc.environ(stat.pid)
        if not self._is_ours(environ):
            return None
        rank, world = _number(environ, "RANK"), _number(environ, "WORLD_SIZE")
        uids = self._proc.uids(stat.pid)
        if rank is None or not world or not _is_possible(rank, world) or len(uids) != 1:
            return None
        identity = Identity(stat.pid, stat.start_ticks, next(iter(uids)))
        if self._is_fork(stat, identity):
            return None
        local = _number(environ, "LOCAL_RANK")
        return Candidate(
            identity=identity,
            rank=rank,
            world_size=world,
            local_rank=-1 if local is None else local,
            is_certain=False,
            environ=environ,
            arguments=self._proc.arguments(stat.pid),
            ancestors=processes.ancestors(stat.pid),
        )

    def _is_fork(self, stat: procfs.Stat, identity: Identity) -> bool:
        """True when a process with a rank's environment is an older one's image."""
        if not stat.stack_start:
            return False
        oldest = self._by_stack.setdefault(stat.stack_start, identity)
        if len(self._by_stack) > MAX_STACKS:
            del self._by_stack[next(iter(self._by_stack))]
        return oldest != identity and oldest.start_ticks <= identity.start_ticks

    def _is_ours(self, environ: Mapping[str, str]) -> bool:
        run_dir = environ.get(RUN_DIR_NAME)
        if run_dir:
            return run_dir.rstrip("/") == self._run_dir
        return self._adopt and "MASTER_ADDR" in environ


def select(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Drop the processes that only inherited a rank.

    1. Records win over the bare view of the same process. 2. Of the uncertain ones, those below any
    other candidate go (workers), unless that one turned out to be a launcher: an uncertain
    candidate with a certain one below it goes as well.
    """
    chosen: dict[Identity, Candidate] = {}
    for candidate in candidates:
        known = chosen.get(candidate.identity)
        if known is None or (known.record is None and candidate.record is not None):
            chosen[candidate.identity] = candidate
    by_pid = {candidate.identity.pid: candidate for candidate in chosen.values()}
    launchers = {
        pid
        for candidate in chosen.values()
        if candidate.is_certain
        for pid in candidate.ancestors
        if pid in by_pid and not by_pid[pid].is_certain
    }
    ranks = by_pid.keys() - launchers
    return [
        candidate
        for candidate in chosen.values()
        if candidate.is_certain
        or (candidate.identity.pid in ranks and ranks.isdisjoint(candidate.ancestors))
    ]


def _is_possible(rank: int, world_size: int) -> bool:
    """Whether a server takes it: a number that cannot be would cost the node its connection."""
    return 0 <= rank < (world_size or wire.MAX_WORLD_SIZE) <= wire.MAX_WORLD_SIZE


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else None
