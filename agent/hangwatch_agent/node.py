"""Everything the agent knows of its node's ranks, kept up to date by two clocks. Sends nothing.

`poll` (a few times a second) reads the records that are due and the facts of known processes;
`scan` (every few seconds) looks through /proc for new processes. `heartbeat` puts it into the
wire's words. All state lives here; judgement lives in discover, process, ranks and launch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hangwatch_agent import children, discover, launch, logs, procfs, ranks, records, table, wire
from hangwatch_agent.discover import Candidate
from hangwatch_agent.process import Identity, Process
from hangwatch_agent.records import Record
from hangwatch_agent.spawned import SpawnFinder
from hangwatch_agent.tracked import Tracked

KEEP_GONE_S = 600.0
FACTS_EVERY_S = 1.0
RECORD_DUE_S = 1.0  # the probe writes once a second
UNREADABLE_GRACE_S = 10.0


class Node:
    """The ranks of this node."""

    def __init__(
        self,
        proc: procfs.Procfs,
        run_dir: Path,
        *,
        adopt: bool,
        boot_id: str,
        resolve: Callable[[str], str],
    ) -> None:
        self._proc = proc
        self._folder = records.Folder(run_dir)
        self._scanner = table.Scanner(proc)
        self._bare = discover.BareFinder(proc, run_dir, adopt)
        self.spawned = SpawnFinder(proc, adopt)
        self._boot_id = boot_id
        self._resolve = resolve
        self._table = table.Table()
        self._records: dict[Path, tuple[Record, Identity]] = {}
        self._absent: set[Path] = set()  # of those, the removed files of living processes
        self._unclaimed: dict[Path, float] = {}  # refused or dead at first sight, since when
        self._bare_found: list[Candidate] = []
        self._tracked: dict[Identity, Tracked] = {}
        self._below_ranks: set[tuple[int, int]] = set()  # (pid, start) of ranks' descendants
        self._facts_at_s = 0.0

    @property
    def tracked(self) -> list[Tracked]:
        """One per (launch, rank): the newest process."""
        newest: dict[tuple[str, int], Tracked] = {}
        for item in self._tracked.values():
            other = newest.get(item.key)
            if other is None or _precedence(item) > _precedence(other):
                newest[item.key] = item
        return list(newest.values())[: wire.MAX_RANKS_PER_NODE]

    def find(self, key: str, rank: int) -> Tracked | None:
        """The tracked process of a rank, the only thing a capture may touch."""
        return next((item for item in self.tracked if item.key == (key, rank)), None)

    def environ(self, item: Tracked) -> dict[str, str]:
        """What a rank was started with, and what its probe has seen since."""
        return {**self._proc.environ(item.identity.pid), **item.candidate.environ}

    def root_of(self, item: Tracked) -> Path:
        """Where a rank's own files are seen, also where it has other mounts than the agent."""
        return self._proc.root / str(item.identity.pid) / "root"

    def scan(self, now_s: float) -> None:
        """Look through /proc and the run dir for what is new, and collect what is long over."""
        self._table = self._scanner.scan(procfs.ticks_now())
        self._bare_found = [*self._bare.find(self._table), *self.spawned.find(self._table)]
        self._update(now_s)
        for item in self._tracked.values():
            if not item.process.is_gone:
                below = children.descendants(item.identity.pid, self._table.by_parent)
                item.process.offspring.adopt(below)
                self._below_ranks.update((stat.pid, stat.start_ticks) for stat in below)
        self._below_ranks = {key for key in self._below_ranks if self._table.holds(*key)}
        self._collect(now_s)

    def poll(self, now_s: float, now_ns: int) -> None:
        """Read the records that are due, and once a second the facts of each process."""
        paths = set(self._folder.paths(time.time()))
        has_changed = any(path not in self._records for path in paths - self._unclaimed.keys())
        for path in list(self._records):
            has_changed |= self._read_again(path, now_ns)
        if has_changed:
            self._update(now_s)
        is_due = now_s - self._facts_at_s >= FACTS_EVERY_S - 0.05
        for item in self._tracked.values():
            if is_due or item.process.state == "?":
                mark = item.record.exit if item.record else None
                item.facts = item.process.observe(now_s, mark, is_moving=item.is_moving(now_ns))
        if is_due:
            self._facts_at_s = now_s

    def translate(self, now_ns: int) -> list[ranks.Translated]:
        """The beat of every rank with ages as of `now_ns`."""
        beats = []
        for item in self.tracked:
            item.translated = item.told(now_ns)
            beats.append(item.translated)
        return beats

    def material(self) -> tuple[object, ...]:
        """Changes exactly when a heartbeat should not wait for its turn."""
        return tuple(
            (
                item.key,
                item.identity,
                item.socket_answers,
                *ranks.material(item.facts, item.payload),
            )
            for item in self.tracked
        )

    def launches(self) -> tuple[wire.Launch, ...]:
        found: dict[str, wire.Launch] = {}
        for item in self.tracked:
            other = found.get(item.launch.key)
            if other is None or other.restart < item.launch.restart:
                found[item.launch.key] = item.launch
        return tuple(found.values())

    def _read_again(self, path: Path, now_ns: int) -> bool:
        """Read a known record when its next beat is due; True when who it is has changed."""
        old, identity = self._records[path]
        age_ns = now_ns - old.payload.at_ns if old.payload else -1
        if old.exit is None and 0 <= age_ns < RECORD_DUE_S * 1e9:
            return False
        tracked = self._tracked.get(identity)
        if (
            tracked is not None
            and tracked.process.is_gone
            and (old.exit is not None or self._facts_at_s > (tracked.process.gone_at_s or 0) + 5)
        ):
            return False
        record = records.read(path)
        if record.is_absent:
            self._miss(path, now_ns)
            return False
        self._absent.discard(path)
        if record.uid != identity.uid or record.start_ticks != identity.start_ticks:
            logs.warning("record_refused", record=path.name, why="its owner or header has changed")
            del self._records[path]
            return True
        if record.payload is None:
            return False  # half written: the last good one stands
        self._records[path] = record, identity
        if tracked is not None:
            tracked.record = record
        return _who(old) != _who(record)

    def _miss(self, path: Path, now_ns: int) -> None:
        """Take note that a record's file has been removed, once it would have a newer beat.

        Its process may well go on: that it writes where nobody reads says nothing of it.
        """
        record, identity = self._records[path]
        item = self._tracked.get(identity)
        is_current = record.payload is not None and not ranks.is_silent(record.payload, now_ns)
        if item is None or item.process.is_gone or is_current or path in self._absent:
            return
        logs.warning("record_removed", record=path.name, rank=item.candidate.rank)
        self._absent.add(path)
        item.record = None

    def _update(self, now_s: float) -> None:
        """Believe or refuse new records, then decide anew which processes are ranks."""
        self._claim_new(now_s)
        bare = (candidate for candidate in self._bare_found if not self._is_orphan(candidate))
        chosen = discover.select([*self._record_candidates(), *bare])
        # The oldest first: of two users with one launch key, who came later is the impostor.
        for candidate in sorted(chosen, key=lambda item: item.identity.start_ticks):
            self._track(candidate, now_s)
        kept = {candidate.identity for candidate in chosen}
        for identity, item in list(self._tracked.items()):
            if identity not in kept and not item.process.is_gone and self._exists(identity):
                del self._tracked[identity]  # it turned out to be a worker or a launcher

    def _is_orphan(self, candidate: Candidate) -> bool:
        """Whether it is what a rank that ended has left behind: a worker that inherited RANK.

        Either it was seen below a rank, or it ran already while the rank was seen to: what takes a
        rank's place starts after the rank has gone.
        """
        identity = candidate.identity
        if (identity.pid, identity.start_ticks) in self._below_ranks:
            return True
        return any(
            item.process.is_gone
            and item.identity != identity
            and identity.start_ticks < (item.process.alive_at_ticks or 0)
            and item.identity.start_ticks <= identity.start_ticks  # a tick is 10 ms
            and _is_namesake(item.candidate, candidate)
            for item in self._tracked.values()
        )

    def _claim_new(self, now_s: float) -> None:
        for path in self._folder.paths(time.time()):
            if path in self._records:
                continue
            record = records.read(path)
            if record.problem:
                self._refuse(discover.Refusal(path, record.problem), now_s)
                continue
            found = discover.identify(record, self._table, self._proc)
            if isinstance(found, discover.Refusal) and found.is_dead and _is_recent(record):
                found = Identity(record.pid, record.start_ticks, record.uid)
            if isinstance(found, discover.Refusal):
                self._refuse(found, now_s)
            else:
                self._unclaimed.pop(path, None)
                self._records[path] = record, found

    def _refuse(self, refusal: discover.Refusal, now_s: float) -> None:
        if refusal.path not in self._unclaimed:
            self._unclaimed[refusal.path] = now_s
            event = "record_of_dead_process" if refusal.is_dead else "record_refused"
            logs.warning(event, record=refusal.path.name, why=refusal.why)

    def _record_candidates(self) -> Iterable[Candidate]:
        for record, identity in self._records.values():
            candidate = discover.from_record(record, identity, self._table, self._proc)
            if candidate is None:
                continue
            # The ancestors of a gone process are unknown: only torch's word makes it a rank.
            if candidate.is_certain or identity in self._tracked or self._exists(identity):
                yield candidate

    def _exists(self, identity: Identity) -> bool:
        stat = self._proc.stat(identity.pid)
        return stat is not None and stat.start_ticks == identity.start_ticks

    def _track(self, candidate: Candidate, now_s: float) -> None:
        item = self._tracked.get(candidate.identity)
        if item is None:
            item = self._begin(candidate, now_s)
            self._tracked[candidate.identity] = item
            logs.info(
                "rank_found",
                job=item.launch.name,
                rank=candidate.rank,
                pid=candidate.identity.pid,
                depth="bare" if candidate.record is None else "probe",
            )
        elif not item.process.is_gone:
            item.candidate = candidate
        if candidate.record is not None and candidate.record not in self._absent:
            item.record = self._records[candidate.record][0]

    def _begin(self, candidate: Candidate, now_s: float) -> Tracked:
        found = launch.launch_of(
            candidate.environ, candidate.arguments, self._start(candidate), self._resolve
        )
        pids = procfs.parse_namespace_pids(self._proc.status(candidate.identity.pid))
        holders = ((item.launch.key, item.identity.uid) for item in self._tracked.values())
        return Tracked(
            candidate=candidate,
            launch=launch.apart(found, candidate.identity.uid, holders),
            found_s=now_s,
            process=Process(
                self._proc, candidate.identity, candidate.environ.get("TORCHELASTIC_ERROR_FILE", "")
            ),
            inner_pid=pids[-1] if len(pids) > 1 else None,
        )

    def _start(self, candidate: Candidate) -> str:
        """The launcher's start on this boot: it outlives the ranks that the launcher restarts."""
        parents = candidate.ancestors
        stat = self._table.by_pid.get(parents[0]) if parents else None
        return f"{self._boot_id[:8]}.{stat.start_ticks}" if stat else self._boot_id[:8]

    def _collect(self, now_s: float) -> None:
        """Forget ranks that ended long ago, and remove the files of processes that are no more."""
        current = {id(item) for item in self.tracked}
        for identity, item in list(self._tracked.items()):
            gone_s = item.process.gone_at_s
            if gone_s is None:
                continue
            is_replaced = id(item) not in current
            if is_replaced or now_s - gone_s > KEEP_GONE_S:
                del self._tracked[identity]
        for path, (_, identity) in list(self._records.items()):
            if identity not in self._tracked and not self._exists(identity):
                del self._records[path]
                self._absent.discard(path)
                _remove(path)
        for path, since_s in list(self._unclaimed.items()):
            if now_s - since_s > UNREADABLE_GRACE_S:
                self._collect_unclaimed(path)

    def _collect_unclaimed(self, path: Path) -> None:
        """Remove a record nobody owns; one of a living process is looked at again later."""
        del self._unclaimed[path]
        record = records.read(path)
        fresh_ns = time.monotonic_ns() - int(UNREADABLE_GRACE_S * 1e9)
        if record.payload is not None and record.payload.at_ns > fresh_ns and not record.problem:
            logs.warning(
                "record_without_process",
                record=path.name,
                likely_cause="the agent sees another pid namespace; run it with the host's pids",
            )
            return
        if _is_dead(record, self._table, self._proc):
            _remove(path)


def _is_namesake(gone: Candidate, candidate: Candidate) -> bool:
    """Whether both stand for the same place in the same launch, as their environments say."""
    names = ("RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "HANGWATCH_LAUNCH_ID")
    return gone.rank == candidate.rank and all(
        gone.environ.get(name) == candidate.environ.get(name)
        for name in names
        if name in gone.environ
    )


def _is_recent(record: Record) -> bool:
    """True for the record of a process that ended lately, as found after the agent's own restart.

    One that still beats has a process that cannot be seen from here, and is not called gone.
    """
    if record.payload is None:
        return False
    age_s = (time.monotonic_ns() - record.payload.at_ns) / 1e9
    return ranks.SILENT_AFTER_S < age_s < KEEP_GONE_S


def _who(record: Record) -> tuple[object, ...]:
    payload = record.payload
    if payload is None:
        return ()
    return payload.rank, payload.world_size, payload.certain


def _precedence(item: Tracked) -> tuple[object, ...]:
    return not item.process.is_gone, item.candidate.is_certain, item.identity.start_ticks


def _is_dead(record: Record, processes: table.Table, proc: procfs.Procfs) -> bool:
    if record.problem:
        return False  # not ours to judge: a link, or a format of a newer probe
    found = discover.identify(record, processes, proc)
    return isinstance(found, discover.Refusal) and found.is_dead


def _remove(path: Path) -> None:
    """Remove a record and its socket; what a job has put in their place may refuse to go."""
    for file in (path, path.with_suffix(".sock")):
        with contextlib.suppress(OSError):
            file.unlink()
