"""Which spawned processes are ranks of a script that starts them itself."""

from __future__ import annotations

from pathlib import Path

from hangwatch_agent import table, wire
from hangwatch_agent.process import Identity
from hangwatch_agent.procfs import Procfs, Stat
from hangwatch_agent.spawned import LOOK_AGAIN_S, SpawnFinder

SPAWN = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)")
TRACKER = ("python", "-c", "from multiprocessing.resource_tracker import main;main(5)")


class Known(Procfs):
    """Processes with the command lines and environment that a test gives."""

    def __init__(self, arguments: dict[int, tuple[str, ...]], environ: dict[str, str]) -> None:
        super().__init__(Path("/nowhere"))
        self._known, self._environ = arguments, environ

    def arguments(self, pid: int) -> tuple[str, ...]:
        return self._known.get(pid, ())

    def environ(self, pid: int) -> dict[str, str]:
        return self._environ

    def uids(self, pid: int) -> frozenset[int]:
        return frozenset({1000})


def stat(pid: int, parent: int) -> Stat:
    return Stat(pid, "python", "S", parent, 0, 1, pid * 10, 0)


def family(environ: dict[str, str] | None = None) -> tuple[SpawnFinder, table.Table]:
    """A script (10) with a resource tracker (11) and two spawned children (12, 13)."""
    processes = table.Table()
    for pid, parent in ((10, 1), (13, 10), (12, 10), (11, 10)):
        table.add(processes, stat(pid, parent))
    arguments = {10: ("python", "train.py"), 11: TRACKER, 12: SPAWN, 13: SPAWN}
    return SpawnFinder(Known(arguments, environ or {}), adopt=True), processes


def threads(*files: str) -> tuple[wire.Thread, ...]:
    frames = tuple(wire.Frame(name="f", file=file, line=1) for file in files)
    return (wire.Thread(pid=12, thread_id=12, name="MainThread", frames=frames),)


RANK = threads("/v/torch/distributed/distributed_c10d.py", "/v/torch/multiprocessing/spawn.py")
LOADER = threads("/v/torch/utils/data/_utils/worker.py", "/usr/lib/multiprocessing/process.py")


def test_family_is_doubtful_until_a_stack_tells() -> None:
    finder, processes = family()

    assert finder.find(processes) == []
    looked = finder.doubtful(0.0)
    assert looked == Identity(12, 120, 1000)
    finder.judge(looked, RANK, 0.0)

    ranks = finder.find(processes)
    assert [(item.identity.pid, item.rank, item.world_size) for item in ranks] == [
        (12, 0, 2),
        (13, 1, 2),
    ]
    assert [item.is_certain for item in ranks] == [False, False]
    assert ranks[0].arguments == ("python", "train.py")


def test_loader_workers_are_no_ranks_and_are_looked_at_rarely() -> None:
    finder, processes = family()
    finder.find(processes)
    looked = finder.doubtful(0.0)
    assert looked is not None

    finder.judge(looked, LOADER, 0.0)

    assert finder.find(processes) == []
    assert finder.doubtful(LOOK_AGAIN_S / 2) is None
    assert finder.doubtful(LOOK_AGAIN_S) == Identity(13, 130, 1000)  # another one, in turn


def test_spawned_child_with_a_master_address_needs_no_collective_in_its_stack() -> None:
    finder, processes = family({"MASTER_ADDR": "127.0.0.1"})
    finder.find(processes)

    finder.judge(Identity(13, 130, 1000), threads("/v/torch/multiprocessing/spawn.py"), 0.0)

    assert len(finder.find(processes)) == 2


def test_rank_that_ended_leaves_the_others_their_numbers() -> None:
    finder, processes = family()
    finder.find(processes)
    finder.judge(Identity(12, 120, 1000), RANK, 0.0)
    later = table.Table()
    for pid, parent in ((10, 1), (13, 10), (11, 10)):
        table.add(later, stat(pid, parent))

    assert [(item.identity.pid, item.rank) for item in finder.find(later)] == [(12, 0), (13, 1)]


def test_children_under_the_probe_or_with_a_rank_of_their_own_are_left_alone() -> None:
    for environ in ({"HANGWATCH_RUN_DIR": "/r"}, {"RANK": "1"}):
        finder, processes = family(environ)
        finder.find(processes)

        assert finder.doubtful(0.0) is None


def test_agent_that_does_not_adopt_looks_at_none() -> None:
    _, processes = family()
    shy = SpawnFinder(Known({12: SPAWN, 13: SPAWN}, {}), adopt=False)

    assert shy.find(processes) == []
    assert shy.doubtful(0.0) is None


def test_command_line_of_a_process_is_read_once() -> None:
    read: list[int] = []

    class Counting(Known):
        def arguments(self, pid: int) -> tuple[str, ...]:
            read.append(pid)
            return super().arguments(pid)

    _, processes = family()
    finder = SpawnFinder(Counting({12: TRACKER, 13: TRACKER}, {}), adopt=True)

    for _ in range(3):
        finder.find(processes)

    assert sorted(read) == [11, 12, 13]
