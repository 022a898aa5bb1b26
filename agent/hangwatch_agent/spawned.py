"""Ranks that a script starts itself by `torch.multiprocessing.spawn`, without a launcher's help.

Nothing in their environment says that they are ranks, or which: the script tells each its number
as an argument. So a family of spawned siblings is doubtful until the stack of one of them shows
torch's spawn function and torch.distributed; then they are numbered in the order of their start,
which is the order in which torch starts them. That is a guess, and is marked as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hangwatch_agent import children, procfs, table, wire
from hangwatch_agent.discover import RUN_DIR_NAME, Candidate
from hangwatch_agent.process import Identity

LOOK_AGAIN_S = 10.0
MOST_LOOKS = 30
MAX_FAMILIES = 64
SETTLED_S = 10.0
_MARK = "from multiprocessing.spawn import spawn_main"
_SPAWN_FILE = "torch/multiprocessing/spawn.py"
_DISTRIBUTED = "torch/distributed/"

Key = tuple[int, int]  # pid and start of the parent


@dataclass
class Family:
    """The spawned children of one process."""

    members: tuple[Identity, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()  # of the parent: they name the script
    ancestors: tuple[int, ...] = ()
    is_confirmed: bool = False
    looks: int = 0
    looked_s: float = float("-inf")


class SpawnFinder:
    """Families of spawned processes on this node; only an adopting agent looks for them."""

    def __init__(self, proc: procfs.Procfs, adopt: bool) -> None:
        self._proc = proc
        self._adopt = adopt
        self._families: dict[Key, Family] = {}
        self._judged: dict[Key, bool] = {}  # whether a process was spawned, by pid and start

    def find(self, processes: table.Table) -> list[Candidate]:
        """The members of confirmed families as ranks; forgets families that are gone."""
        if not self._adopt:
            return []
        found: dict[Key, Family] = {}
        present = {(stat.pid, stat.start_ticks) for stat in processes.by_pid.values()}
        self._judged = {key: told for key, told in self._judged.items() if key in present}
        for parent, below in processes.by_parent.items():
            stat = processes.by_pid.get(parent)
            if stat is None or len(below) < 2 or len(found) >= MAX_FAMILIES:
                continue
            family = self._family((parent, stat.start_ticks), below, processes)
            if family is not None:
                found[parent, stat.start_ticks] = family
        self._families = found
        return [rank for family in found.values() if family.is_confirmed for rank in _ranks(family)]

    def doubtful(self, now_s: float) -> Identity | None:
        """A process whose stack would tell whether its family are ranks, if one is due."""
        for family in self._families.values():
            is_due = now_s - family.looked_s >= LOOK_AGAIN_S and family.looks < MOST_LOOKS
            if not family.is_confirmed and is_due:
                # In turn, since one of them may be where no stack tells.
                return family.members[family.looks % len(family.members)]
        return None

    def judge(self, looked: Identity, threads: Iterable[wire.Thread], now_s: float) -> None:
        """Take note of what a doubtful process's stacks show."""
        for family in self._families.values():
            if looked in family.members:
                family.looks += 1
                family.looked_s = now_s
                family.is_confirmed |= _shows_a_rank(threads, family.environ)

    def _family(
        self, key: Key, below: Iterable[procfs.Stat], processes: table.Table
    ) -> Family | None:
        known = self._families.get(key)
        stats = sorted(below, key=lambda stat: (stat.start_ticks, stat.pid))
        if known is not None and known.is_confirmed:
            return known  # who ends is followed as gone, and keeps its number
        spawned = [stat for stat in stats if self._is_spawned(stat)]
        if len(spawned) < 2:
            return None
        environ = self._proc.environ(spawned[0].pid)
        if RUN_DIR_NAME in environ or "RANK" in environ:
            return None
        family = known or Family()
        family.members = tuple(
            Identity(stat.pid, stat.start_ticks, uid)
            for stat in spawned
            for uid in self._proc.uids(stat.pid)
        )
        family.environ = environ
        family.arguments = self._proc.arguments(key[0])
        family.ancestors = processes.ancestors(spawned[0].pid)
        return family if len(family.members) == len(spawned) else None

    def _is_spawned(self, stat: procfs.Stat) -> bool:
        """Asked of every Python process at every scan, and read once."""
        key = (stat.pid, stat.start_ticks)
        told = self._judged.get(key)
        if told is None:
            told = self._shows_spawn(stat)
            # A fork shows its parent's command line until it execs.
            if procfs.ticks_now() - stat.start_ticks > SETTLED_S * procfs.TICKS_PER_S:
                self._judged[key] = told
        return told

    def _shows_spawn(self, stat: procfs.Stat) -> bool:
        if "python" not in stat.name and not stat.name.startswith("pt_"):
            return False
        arguments = self._proc.arguments(stat.pid)
        is_helper = children.role_of(stat.name, arguments, "", ()) == children.HELPER
        return not is_helper and any(_MARK in word for word in arguments)


def _ranks(family: Family) -> Iterable[Candidate]:
    size = len(family.members)
    for number, identity in enumerate(family.members):
        said = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        yield Candidate(
            identity=identity,
            rank=number,
            world_size=size,
            local_rank=number,
            is_certain=False,
            environ={**family.environ, **{name: str(value) for name, value in said.items()}},
            arguments=family.arguments,
            ancestors=family.ancestors,
        )


def _shows_a_rank(threads: Iterable[wire.Thread], environ: Mapping[str, str]) -> bool:
    """Whether torch's spawn function runs in it, and something of torch.distributed."""
    files = {frame.file for thread in threads for frame in thread.frames}
    is_spawned = any(file.endswith(_SPAWN_FILE) for file in files)
    return is_spawned and ("MASTER_ADDR" in environ or any(_DISTRIBUTED in f for f in files))
