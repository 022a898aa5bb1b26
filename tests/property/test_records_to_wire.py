"""Whatever a job's record says, the heartbeat of its node is one that the server accepts."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import fitting, limits, ranks, wire
from hangwatch_agent.groups import Groups
from hangwatch_agent.payload import RecordPayload
from hangwatch_server.ingest import bounds

NOW_NS = 10**15
NUMBERS = st.sampled_from([-(2**63), -(2**62), -1, 0, 1, NOW_NS, 2**62, 2**63 - 1])
SECONDS = st.none() | st.sampled_from([-1e300, -5.0, 0.0, 1e-9, 30.0, 1e18, 1e300])
RANKS = st.sampled_from(["0-1", "0", "", "0-262143", "0-262144", "1-900001:4", "9999999", "x"])
ENTRIES = st.fixed_dictionaries(
    {"seq": NUMBERS, "op": st.just("x"), "retired": st.booleans()}, optional={"timeout_ms": NUMBERS}
)
GROUPS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "n" * 300, "n" * 301]), "ranks": RANKS},
    optional={
        "epoch": NUMBERS,
        "counter": NUMBERS,
        "moved_ns": NUMBERS,
        "dumped_ns": NUMBERS,
        "dumped_counter": NUMBERS,
        "timeout_s": SECONDS,
        "entries": st.lists(ENTRIES, max_size=2),
        "tail": st.fixed_dictionaries(
            {
                "calls": st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3),
                "kinds": st.lists(ENTRIES, max_size=2),
            }
        ),
    },
)
CALLS = st.fixed_dictionaries(
    {"op": st.just("send"), "group": st.just("a"), "since_ns": NUMBERS, "peer": NUMBERS}
)
RECORDS = st.fixed_dictionaries(
    {"beat": NUMBERS, "at_ns": NUMBERS},
    optional={
        "phase": st.just("checkpoint"),
        "phase_since_ns": NUMBERS,
        "phase_limit_s": SECONDS,
        "groups_begun": NUMBERS,
        "groups": st.builds(
            lambda groups, times: groups * times,
            st.lists(GROUPS, max_size=2),
            st.sampled_from([1, wire.MAX_GROUPS_PER_RANK]),
        ),
        "calls": st.builds(lambda call, times: [call] * times, CALLS, st.sampled_from([1, 3000])),
        "waits": st.lists(
            st.fixed_dictionaries({"what": st.just("new_group"), "since_ns": NUMBERS}), max_size=1
        ),
    },
)


LAUNCH = wire.Launch(key="job", name="job")
HONEST = {
    "beat": 5,
    "at_ns": NOW_NS,
    "groups": [{"name": "0", "ranks": "0-1", "entries": [{"seq": 3, "op": "x", "retired": True}]}],
}


def told_by(record: object, rank: int = 0) -> ranks.Translated:
    """What the node says of a rank with this record."""
    payload = msgspec.json.decode(msgspec.json.encode(record), type=RecordPayload)
    position = ranks.Position(LAUNCH, rank, 2, 0, 7, 5, True, "train.py")
    described = Groups(LAUNCH.key).describe(payload.groups, NOW_NS)
    return ranks.probed(position, wire.ProcessFacts(state="S"), payload, described, NOW_NS)


def accepted(*told: ranks.Translated) -> wire.Heartbeat:
    """The heartbeat of their node as the server takes it."""
    groups = {info.gid: info for one in told for info in one.groups}
    _, data = fitting.heartbeat(
        wire.Heartbeat(
            number=1,
            launches=(LAUNCH,),
            ranks=tuple(one.beat for one in told),
            groups=tuple(groups.values()),
        )
    )
    frame = wire.decode_from_agent(data)
    assert isinstance(frame, wire.Heartbeat)
    bounds.check_heartbeat(frame)
    bounds.check_ranges(frame.groups)
    return frame


@given(RECORDS)
def test_record_of_one_rank_never_makes_the_server_refuse_its_node(record: object) -> None:
    told, other = told_by(record), told_by(HONEST, rank=1)

    frame = accepted(told, other)

    assert limits.problem(told.beat) == ""
    assert frame.ranks[1] == other.beat


AGES = st.sampled_from([float("nan"), float("inf"), -5.0, 0.0, 30.0, 1e300])
COUNTS = st.sampled_from([0, 1, 64, 65, 1025, 4097, 16_385])
ENTRY = wire.Entry(seq=1, op="x", is_retired=True)
GROUP_BEATS = st.builds(
    lambda counter, age, entries, tail, kind: wire.GroupBeat(
        gid="g",
        counter=counter,
        stall_s=age,
        entries=(ENTRY,) * entries,
        tail=wire.Tail(calls=((1, kind),) * tail, kinds=(ENTRY,)),
    ),
    st.sampled_from([-1, 0, 5]),
    AGES,
    st.sampled_from([0, 64, 65]),
    st.sampled_from([0, 64, 65]),
    st.sampled_from([-1, 0, 1]),
)
BEATS = st.builds(
    lambda group, groups, calls, peers, text, age: wire.RankBeat(
        launch="job",
        rank=0,
        local_rank=0,
        world_size=1,
        pid=1,
        start_ticks=1,
        process=wire.ProcessFacts(state="S"),
        groups=(group,) * groups,
        calls=(wire.Call(op="send", gid="g", age_s=0.0),) * calls,
        p2p=(wire.P2PCount(gid="g", peer=0, is_send=True, posted=1, done=1),) * peers,
        lacks=("x" * text,),
        beat_age_s=age,
    ),
    GROUP_BEATS,
    st.sampled_from([0, 1, 4097]),
    COUNTS,
    COUNTS,
    st.sampled_from([0, 4096, 4097]),
    AGES,
)


@given(BEATS)
def test_agent_finds_all_that_the_server_would_refuse_of_a_rank(beat: wire.RankBeat) -> None:
    frame = wire.Heartbeat(number=1, launches=(), ranks=(beat,))
    try:
        read = wire.decode_from_agent(wire.encode(frame))
        assert isinstance(read, wire.Heartbeat)
        bounds.check_heartbeat(read)
        is_refused = False
    except wire.WireError:
        is_refused = True

    assert bool(limits.problem(beat)) == is_refused
