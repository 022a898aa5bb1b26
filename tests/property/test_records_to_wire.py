"""Whatever a job's record says, the heartbeat of its node is one that the server accepts."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import fitting, ranks, wire
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
    {"name": st.just("a"), "ranks": RANKS},
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
        "groups": st.lists(GROUPS, max_size=2),
        "calls": st.builds(lambda call, times: [call] * times, CALLS, st.sampled_from([1, 3000])),
        "waits": st.lists(
            st.fixed_dictionaries({"what": st.just("new_group"), "since_ns": NUMBERS}), max_size=1
        ),
    },
)


@given(RECORDS)
def test_record_of_one_rank_never_makes_the_server_refuse_its_node(record: object) -> None:
    payload = msgspec.json.decode(msgspec.json.encode(record), type=RecordPayload)
    launch = wire.Launch(key="job", name="job")
    position = ranks.Position(launch, 0, 2, 0, 7, 5, True, "train.py")

    told = ranks.probed(position, wire.ProcessFacts(state="S"), payload, NOW_NS)

    _, data = fitting.heartbeat(
        wire.Heartbeat(number=1, launches=(launch,), ranks=(told.beat,), groups=told.groups)
    )
    frame = wire.decode_from_agent(data)
    assert isinstance(frame, wire.Heartbeat)
    bounds.check_heartbeat(frame)
    bounds.check_ranges(frame.groups)
