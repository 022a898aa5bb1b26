"""Where a rank truly waits: the child process or thread whose work it needs."""

from __future__ import annotations

import msgspec
from tests.unit.server.stacks import recorded

from hangwatch_agent import wire
from hangwatch_server import stacks
from hangwatch_server.model import Activity, StackFacts


def child(
    process: wire.ProcessStacks | None = None,
    *,
    pid: int = 0,
    name: str = "python",
    role: str = "other",
    state: str = "S",
    wchan: str = "",
    share: float = 0.0,
    parent: int = 1,
) -> wire.ChildFacts:
    pid = process.pid if process is not None else pid
    return wire.ChildFacts(
        pid=pid, name=name, role=role, state=state, wchan=wchan, cpu_share=share, parent=parent
    )


def facts_of(
    main: wire.ProcessStacks, *children: wire.ChildFacts, read: tuple[wire.ProcessStacks, ...] = ()
) -> StackFacts:
    facts = wire.ProcessFacts(state="S", wchan="do_wait", children=children)
    sample = stacks.Sample(recorded.part(main, *read, facts=facts), taken_s=1.0, capture="c1")
    made = stacks.facts([sample], now_s=1.0)
    assert made is not None
    return made


def other(name: str) -> wire.ProcessStacks:
    return recorded.process(name, role="other")


def test_forked_child_is_named_with_its_own_frame() -> None:
    forked = other("mpqueue_child")

    facts = facts_of(recorded.process("mpqueue"), child(forked), read=(forked,))

    assert facts.detail == (
        f"waits for its child process {forked.pid} at prog.py:10 in wait_for_work"
    )
    assert facts.waits_on == "child"


def test_spawned_child_is_named_and_the_resource_tracker_is_not() -> None:
    spawned = other("join_spawn_child")
    tracker = child(pid=spawned.pid - 1, role="helper")

    facts = facts_of(recorded.process("join_spawn"), tracker, child(spawned), read=(spawned,))

    assert facts.detail.endswith(f"{spawned.pid} at prog.py:10 in wait_for_work")


def test_program_below_a_shell_is_the_place_where_the_rank_waits() -> None:
    shell = child(pid=20, name="sh", wchan="do_wait")
    copy = child(pid=21, name="cp", wchan="nfs_wait_bit_killable", state="D", parent=20)

    facts = facts_of(recorded.process("subprocess_run"), shell, copy)

    assert facts.detail == (
        "waits for its child process 21 (cp) in D state in nfs_wait_bit_killable: "
        "it waits for the NFS server"
    )


def test_stopped_child_goes_before_others() -> None:
    facts = facts_of(
        recorded.process("subprocess_run"),
        child(pid=20, name="logger"),
        child(pid=21, name="tar", state="T"),
    )

    assert facts.detail == "waits for its child process 21 (tar) stopped by a signal"


def test_compiler_as_child_makes_it_compiling() -> None:
    compiler = child(pid=20, name="cc1plus", role="compile", state="R", share=0.9)

    facts = facts_of(recorded.process("subprocess_run"), compiler)

    assert (facts.activity, facts.is_served) == (Activity.COMPILE, True)


def test_child_that_works_serves_its_rank() -> None:
    forked = other("mpqueue_child")

    facts = facts_of(recorded.process("mpqueue"), child(forked, share=0.5), read=(forked,))

    assert facts.is_served


def test_child_that_sleeps_serves_nobody_whatever_its_stack_says() -> None:
    """After vfork it shares its parent's memory, where py-spy finds the parent's stack."""
    forked = other("mpqueue_child")
    active = tuple(
        msgspec.structs.replace(thread, is_active=True, owns_gil=True) for thread in forked.threads
    )
    forked = msgspec.structs.replace(forked, threads=active)

    asleep = facts_of(recorded.process("mpqueue"), child(forked), read=(forked,))
    ready = facts_of(recorded.process("mpqueue"), child(forked, state="R"), read=(forked,))
    unknown = facts_of(recorded.process("mpqueue"), read=(forked,))

    assert [asleep.is_served, ready.is_served, unknown.is_served] == [False, True, True]


def test_thread_that_moves_breaks_the_run_of_who_waits_for_it() -> None:
    main = recorded.process("class_lock")
    writer = next(thread for thread in main.threads if thread.name == "writer")
    moved = msgspec.structs.replace(
        writer, frames=(msgspec.structs.replace(writer.frames[0], line=1), *writer.frames[1:])
    )
    later = msgspec.structs.replace(
        main, threads=tuple(moved if thread is writer else thread for thread in main.threads)
    )
    samples = [
        stacks.Sample(recorded.part(process), taken_s=float(at), capture=f"c{at}")
        for at, process in enumerate((main, main, later))
    ]

    still, moving = (stacks.facts(samples[:n], now_s=3.0) for n in (2, 3))

    assert still is not None
    assert moving is not None
    assert (still.same_leaf_captures, moving.same_leaf_captures) == (2, 1)
