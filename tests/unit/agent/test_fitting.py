"""Frames over the limit lose detail, and never a rank."""

from __future__ import annotations

import pytest

from hangwatch_agent import fitting, wire

ENTRIES = tuple(
    wire.Entry(seq=seq, op="x" * 60, is_retired=False, input_dtypes=("y" * 32,) * 32)
    for seq in range(64)
)


def beat(
    rank: int, groups: tuple[wire.GroupBeat, ...], lacks: tuple[str, ...] = ()
) -> wire.RankBeat:
    return wire.RankBeat(
        launch="k",
        rank=rank,
        local_rank=rank,
        world_size=1024,
        pid=rank,
        start_ticks=1,
        process=wire.ProcessFacts(state="S"),
        groups=groups,
        lacks=lacks,
    )


def group(gid: str, stall_s: float = 1.0, entries: tuple[wire.Entry, ...] = ()) -> wire.GroupBeat:
    return wire.GroupBeat(gid=gid, counter=1, stall_s=stall_s, entries=entries)


def sent(*beats: wire.RankBeat, groups: tuple[wire.GroupInfo, ...] = ()) -> wire.Heartbeat:
    """What the server reads of a heartbeat."""
    whole = wire.Heartbeat(number=1, launches=(), ranks=beats, groups=groups)
    frame, data = fitting.heartbeat(whole)
    read = wire.decode_from_agent(data)
    assert read == frame
    assert isinstance(read, wire.Heartbeat)
    return read


def test_heartbeat_that_fits_travels_whole() -> None:
    whole = beat(0, (group("a", entries=ENTRIES),))

    assert sent(whole).ranks == (whole,)


def test_oversized_heartbeat_loses_old_entries_first() -> None:
    groups = tuple(group(str(gid), entries=ENTRIES) for gid in range(8))

    frame = sent(*(beat(rank, groups) for rank in range(32)))

    assert len(frame.ranks) == 32
    assert [entry.seq for entry in frame.ranks[0].groups[0].entries] == [63]
    assert "did not fit" in frame.ranks[0].lacks[0]


def test_rank_with_very_much_state_costs_the_others_nothing() -> None:
    small = [beat(rank, (group("a", entries=ENTRIES[:4]),)) for rank in range(1, 8)]
    huge = beat(0, tuple(group(str(gid), entries=ENTRIES) for gid in range(900)))

    frame = sent(huge, *small)

    assert frame.ranks[1:] == tuple(small)
    assert "did not fit" in frame.ranks[0].lacks[0]


def test_long_descriptions_of_one_ranks_groups_cost_the_others_nothing() -> None:
    infos = [
        wire.GroupInfo(gid=gid, launch="k", name="n", description="", backend="", ranks=ranks)
        for gid, ranks in (("shared", "0-7"), *((str(gid), "1," * 20_000) for gid in range(400)))
    ]
    small = [beat(rank, (group("shared", entries=ENTRIES),)) for rank in range(1, 8)]
    huge = beat(0, tuple(group(info.gid) for info in infos))

    frame = sent(huge, *small, groups=tuple(infos))

    assert frame.ranks[1:] == tuple(small)
    assert "shared" in {info.gid for info in frame.groups}


def test_full_node_with_many_groups_keeps_all_ranks_and_the_groups_that_are_waited_in() -> None:
    waited_in = group("waited-in", 99.0, ENTRIES)
    groups = (*(group(str(gid), float(gid)) for gid in range(600)), waited_in)
    infos = tuple(
        wire.GroupInfo(gid=one.gid, launch="k", name="n", description="", backend="", ranks="0-7")
        for one in groups
    )

    frame = sent(
        *(beat(rank, groups, ("z" * 300,) * 16) for rank in range(wire.MAX_RANKS_PER_NODE)),
        groups=infos,
    )

    assert len(frame.ranks) == wire.MAX_RANKS_PER_NODE
    kept = [one.gid for one in frame.ranks[0].groups]
    assert kept[:2] == ["waited-in", "0"]
    assert {info.gid for info in frame.groups} == set(kept)


@pytest.mark.parametrize(("threads", "kept"), [(1, 2), (60, 1), (250, 0)])
def test_oversized_capture_keeps_the_ranks_own_stack_if_it_can(threads: int, kept: int) -> None:
    frames = tuple(wire.Frame(name="n" * 200, file="f" * 200, line=1) for _ in range(200))
    stacks = wire.ProcessStacks(
        pid=1,
        role="main",
        threads=(wire.Thread(pid=1, thread_id=1, name="", frames=frames),) * threads,
    )
    whole = wire.CapturePart(
        capture="c", launch="k", rank=0, pid=1, age_s=0, stacks=(stacks, stacks)
    )

    read = wire.decode_from_agent(fitting.part(whole))

    assert isinstance(read, wire.CapturePart)
    assert len(read.stacks) == kept
    assert bool(read.reason) == (kept < 2)


def report(launch: str, members: int, error: str) -> wire.RasReport:
    of_all = tuple(
        wire.RasMember(rank, -1, rank, 0, wire.RasState.RUNNING, (), error)
        for rank in range(members)
    )
    item = wire.RasCommunicator(hash="a", size=members, members=of_all)
    return wire.RasReport(launch=launch, number=1, age_s=0.0, communicators=(item,))


def test_one_jobs_huge_answer_of_nccl_ras_does_not_cost_the_others_theirs() -> None:
    small, huge = report("small", 8, ""), report("huge", 65_536, "e" * 150)

    frame, data = fitting.heartbeat(
        wire.Heartbeat(number=1, launches=(), ranks=(), ras=(small, huge))
    )

    assert len(data) <= wire.MAX_FRAME_BYTES
    assert frame.ras == (small,)


def test_look_at_a_process_of_very_many_deep_threads_fits() -> None:
    frames = (wire.Frame(name="n" * 256, file="f" * 256, line=1),) * wire.MAX_FRAMES_PER_STACK
    threads = tuple(wire.Thread(pid=5, thread_id=5 + number, name="t", frames=frames)
                    for number in range(wire.MAX_THREADS))  # fmt: skip
    main = wire.ProcessStacks(pid=5, role="main", threads=threads)

    data = fitting.sample(
        wire.CapturePart(capture="s", launch="k", rank=0, pid=5, age_s=0.0, stacks=(main,))
    )

    frame = wire.decode_from_agent(data)
    assert isinstance(frame, wire.Samples)
    assert frame.parts[0].stacks[0].threads == threads[: fitting.SURE_TO_FIT]


def test_groups_beyond_their_number_wait_for_the_next_heartbeat() -> None:
    groups = tuple(
        wire.GroupInfo(gid=str(gid), launch="k", name="", description="", backend="", ranks="0")
        for gid in range(wire.MAX_NEW_GROUPS + 3)
    )

    assert sent(beat(0, ()), groups=groups).groups == groups[:-3]
