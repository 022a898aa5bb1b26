"""Roles of a rank's descendants."""

from __future__ import annotations

import pytest

from hangwatch_agent import children
from hangwatch_agent.procfs import Stat

RANK = ("python", "train.py")
SPAWN = (
    "python",
    "-c",
    "from multiprocessing.spawn import spawn_main; ...",
    "--multiprocessing-fork",
)
TRACKER = ("python", "-c", "from multiprocessing.resource_tracker import main;main(7)")
FORK_SERVER = ("python", "-c", "from multiprocessing.forkserver import main; main(5, 6, [])")
INDUCTOR = ("python", "/x/torch/_inductor/compile_worker/__main__.py", "--workers=8")


@pytest.mark.parametrize(
    ("name", "arguments", "parent", "role"),
    [
        ("pt_data_worker", RANK, "", "loader"),
        ("pt_data_worker", SPAWN, "", "loader"),
        ("python", SPAWN, "", "loader"),
        ("python", RANK, "", "loader"),
        ("python", TRACKER, "", "helper"),
        ("python", FORK_SERVER, "", "helper"),
        ("python", FORK_SERVER, "helper", "loader"),
        ("python", INDUCTOR, "", "compile"),
        ("python", INDUCTOR, "compile", "compile"),
        ("ptxas", ("/usr/local/cuda/bin/ptxas", "-O3"), "", "compile"),
        ("cc1plus", ("/usr/lib/gcc/cc1plus",), "other", "compile"),
        ("bash", ("bash", "-c", "sleep 1"), "", "other"),
        ("python", RANK, "loader", "other"),
        ("kworker", (), "", "other"),
    ],
)
def test_role(name: str, arguments: tuple[str, ...], parent: str, role: str) -> None:
    assert children.role_of(name, arguments, parent, RANK) == role


def stat(pid: int, parent: int) -> Stat:
    return Stat(pid, "python", "S", parent, 0, 1, pid, 0)


def test_descendants_come_parents_first_and_are_bounded() -> None:
    by_parent = {1: [stat(3, 1), stat(2, 1)], 2: [stat(4, 2)], 9: [stat(10, 9)]}

    assert [found.pid for found in children.descendants(1, by_parent)] == [2, 3, 4]
    crowd = {1: [stat(pid, 1) for pid in range(2, 500)]}
    assert len(children.descendants(1, crowd)) == children.MAX_CHILDREN


def test_only_interpreters_are_python() -> None:
    assert children.is_python(RANK, "/usr/bin/python3.11")
    assert children.is_python(RANK)
    assert not children.is_python(("ptxas",), "/usr/local/cuda/bin/ptxas")
