"""Every frame survives encoding, and bytes that are no frame raise WireError and nothing else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import wire

WORDS = st.text(max_size=12)
COUNTS = st.integers(0, 2**40)
SECONDS = st.floats(0, 1e6, allow_nan=False)

ENTRIES = st.builds(
    wire.Entry,
    seq=COUNTS,
    op=WORDS,
    is_retired=st.booleans(),
    input_sizes=st.lists(st.lists(COUNTS, max_size=3).map(tuple), max_size=2).map(tuple),
    timeout_s=st.none() | SECONDS,
)
GROUP_BEATS = st.builds(
    wire.GroupBeat,
    gid=WORDS,
    counter=COUNTS,
    stall_s=SECONDS,
    seq=st.none() | COUNTS,
    entries=st.lists(ENTRIES, max_size=2).map(tuple),
)
PROCESSES = st.builds(
    wire.ProcessFacts,
    state=st.sampled_from(["R", "S", "D", "T", "gone"]),
    main_cpu_share=st.none() | SECONDS,
    io_bytes=st.none() | COUNTS,
    children=st.lists(
        st.builds(wire.ChildFacts, pid=COUNTS, name=WORDS, role=WORDS, state=WORDS), max_size=2
    ).map(tuple),
)
RANKS = st.builds(
    wire.RankBeat,
    launch=WORDS,
    rank=COUNTS,
    local_rank=COUNTS,
    world_size=COUNTS,
    pid=COUNTS,
    start_ticks=COUNTS,
    process=PROCESSES,
    depth=st.sampled_from(wire.Depth),
    groups=st.lists(GROUP_BEATS, max_size=2).map(tuple),
)
STACKS = st.builds(
    wire.ProcessStacks,
    pid=COUNTS,
    role=WORDS,
    threads=st.lists(
        st.builds(
            wire.Thread,
            pid=COUNTS,
            thread_id=COUNTS,
            name=WORDS,
            frames=st.lists(
                st.builds(wire.Frame, name=WORDS, file=WORDS, line=COUNTS), max_size=3
            ).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)
RAS = st.builds(
    wire.RasReport,
    launch=WORDS,
    number=COUNTS,
    age_s=SECONDS,
    hosts=st.lists(WORDS, max_size=2).map(tuple),
    communicators=st.lists(
        st.builds(
            wire.RasCommunicator,
            hash=WORDS,
            size=COUNTS,
            ops=st.lists(WORDS, max_size=2).map(tuple),
            members=st.lists(
                st.builds(
                    wire.RasMember,
                    rank=COUNTS,
                    host=COUNTS,
                    pid=COUNTS,
                    gpu=COUNTS,
                    state=st.sampled_from(wire.RasState),
                    counts=st.lists(COUNTS, max_size=2).map(tuple),
                ),
                max_size=2,
            ).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)
AGENT_FRAMES = st.one_of(
    st.builds(wire.Hello, protocol=COUNTS, node=WORDS, version=WORDS),
    st.builds(
        wire.Heartbeat,
        number=COUNTS,
        launches=st.lists(st.builds(wire.Launch, key=WORDS, name=WORDS), max_size=2).map(tuple),
        ranks=st.lists(RANKS, max_size=3).map(tuple),
        ras=st.lists(RAS, max_size=2).map(tuple),
    ),
    st.builds(
        wire.CapturePart,
        capture=WORDS,
        launch=WORDS,
        rank=COUNTS,
        pid=COUNTS,
        age_s=SECONDS,
        stacks=st.lists(STACKS, max_size=2).map(tuple),
    ),
)
SERVER_FRAMES = st.one_of(
    st.builds(wire.Welcome, protocol=COUNTS, version=WORDS),
    st.builds(wire.Refused, code=WORDS, reason=WORDS),
    st.builds(wire.AskRas, launches=st.lists(WORDS, max_size=3).map(tuple), for_s=SECONDS),
    st.builds(wire.SetInterval, interval_s=SECONDS),
    st.builds(wire.Stored, capture=WORDS, launch=WORDS, rank=COUNTS),
    st.builds(
        wire.TakeCapture,
        capture=WORDS,
        targets=st.lists(st.builds(wire.Target, launch=WORDS, rank=COUNTS), max_size=3).map(tuple),
        kinds=st.lists(st.sampled_from(wire.CaptureKind), max_size=2).map(tuple),
    ),
)


@given(AGENT_FRAMES)
def test_frame_of_an_agent_survives_encoding(frame: wire.AgentFrame) -> None:
    assert wire.decode_from_agent(wire.encode(frame)) == frame


@given(SERVER_FRAMES)
def test_frame_of_a_server_survives_encoding(frame: wire.ServerFrame) -> None:
    assert wire.decode_from_server(wire.encode(frame)) == frame


@given(st.binary(max_size=200))
def test_garbage_is_refused_and_nothing_else(data: bytes) -> None:
    with contextlib.suppress(wire.WireError):
        wire.decode_from_agent(data)
    with contextlib.suppress(wire.WireError):
        wire.decode_from_server(data)


@given(AGENT_FRAMES, st.data())
def test_damaged_frame_is_read_or_refused(frame: wire.AgentFrame, data: st.DataObject) -> None:
    encoded = bytearray(wire.encode(frame))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))

    with contextlib.suppress(wire.WireError):
        wire.decode_from_agent(bytes(encoded))


def test_frame_of_the_other_side_is_refused() -> None:
    with pytest.raises(wire.WireError, match="cannot be read"):
        wire.decode_from_agent(wire.encode(wire.Stored(capture="c", launch="l", rank=0)))


def test_frame_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(wire.WireError, match="over the limit"):
        wire.decode_from_agent(b"\0" * (wire.MAX_FRAME_BYTES + 1))
