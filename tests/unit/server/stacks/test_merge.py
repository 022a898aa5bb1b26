"""The merged tree and the classes: order, rank sets, filters, and what stands still."""

from __future__ import annotations

from tests.unit.server.stacks import recorded

from hangwatch_agent import wire
from hangwatch_server import stacks
from hangwatch_server.model import Activity, TreeNode

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
MAIN = ("main", "/home/u/train.py", 5)


def waiting(rank: int) -> stacks.RankStacks:
    return stacks.RankStacks(rank, (recorded.stack(("all_reduce", C10D, 3252), MAIN),))


def busy(rank: int, line: int = 9) -> stacks.RankStacks:
    return stacks.RankStacks(rank, (recorded.stack(("load", "/home/u/train.py", line), MAIN),))


def test_odd_branch_comes_first_with_its_ranks() -> None:
    roots, classes = stacks.merge([waiting(0), waiting(1), busy(2), waiting(3)])

    (root,) = roots
    assert (root.name, root.ranks, root.count) == ("main", "0-3", 4)
    assert [(child.name, child.ranks) for child in root.children] == [
        ("load", "2"),
        ("all_reduce", "0-1,3"),
    ]
    assert [(item.ranks, item.activity) for item in classes] == [
        ("2", Activity.USER_CODE),
        ("0-1,3", Activity.COLLECTIVE),
    ]


def test_framework_frames_can_be_hidden() -> None:
    roots, _ = stacks.merge([waiting(0)], show_framework=False)

    assert [(root.name, root.children) for root in roots] == [("main", ())]


def test_native_frames_are_drawn_on_request_only() -> None:
    part = stacks.RankStacks(0, (recorded.process("allreduce_native"),))

    without, classes = stacks.merge([part])
    with_native, _ = stacks.merge([part], native=True)

    assert len(_chain(without)) == 4
    assert any("Work::wait" in name for name in _chain(with_native))
    assert classes[0].activity is Activity.COLLECTIVE


def _chain(roots: tuple[TreeNode, ...]) -> list[str]:
    names = []
    while roots:
        names.append(roots[0].name)
        roots = roots[0].children
    return names


def test_two_captures_tell_frozen_from_moving() -> None:
    roots, classes = stacks.merge([waiting(0), busy(1, line=10)], [waiting(0), busy(1, line=9)])

    assert {item.ranks: item.is_frozen for item in classes} == {"0": True, "1": False}
    assert roots[0].is_frozen is False


def test_one_capture_cannot_tell_frozen_from_moving() -> None:
    roots, classes = stacks.merge([waiting(0)])

    assert roots[0].is_frozen is None
    assert classes[0].is_frozen is None


def test_loader_workers_have_a_root_of_their_own() -> None:
    worker = recorded.stack(("read", "/home/u/data.py", 1), pid=101, role="loader")
    part = stacks.RankStacks(0, (*busy(0).stacks, worker))

    roots, classes = stacks.merge([part])

    assert {root.name for root in roots} == {"main", "loader workers"}
    assert len(classes) == 1


def test_nothing_merges_to_nothing() -> None:
    empty = wire.ProcessStacks(pid=1, role="main", threads=(), reason="not permitted")

    assert stacks.merge([stacks.RankStacks(0, (empty,))]) == ((), ())


def test_text_shows_each_stack_once_and_what_is_missing() -> None:
    empty = wire.ProcessStacks(
        pid=7, role="main", threads=(), reason="not permitted", remedy="Be root."
    )

    shown = stacks.text([waiting(0), waiting(1), busy(2), stacks.RankStacks(3, (empty,))])

    assert shown.index("rank 2 (1), main thread") < shown.index("ranks 0-1 (2), main thread")
    assert shown.count("all_reduce") == 1
    assert "rank 3, pid 7: no stack: not permitted Be root." in shown


def test_signature_ignores_what_varies_between_processes() -> None:
    def frames(folder: str) -> tuple[wire.Frame, ...]:
        native = wire.Frame(name=folder, file="libc.so.6", line=0, is_native=True)
        return (native, wire.Frame(name="call", file=f"/tmp/{folder}/c.py", line=3))

    assert stacks.signature(frames("a1")) == stacks.signature(frames("b2"))
    assert stacks.signature(frames("a1")) != stacks.signature(frames("a1")[:1])
