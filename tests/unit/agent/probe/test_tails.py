"""Long records made short, and read back by the node service."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from tests.support.recorded import Recorder

from hangwatch_agent import ranks
from hangwatch_agent.payload import GroupPayload
from hangwatch_agent.probe import dump, tails

SECOND = 1_000_000_000


def entries(ops: list[str], *, pending: int = 0) -> list[dict[str, Any]]:
    recorder = Recorder("gloo")
    for seq, op in enumerate(ops, start=1):
        state = "scheduled" if seq > len(ops) - pending else "completed"
        recorder.collective("0", seq, op, state=state)
    return dump.Dump(dump.newest_first(recorder.dump()), ["0"], 64).groups["0"].collectives


def test_short_record_has_no_tail() -> None:
    whole, tail = tails.split(entries(["all_reduce"] * 16))

    assert (len(whole), tail) == (16, None)


def test_tail_names_each_distinct_call_once() -> None:
    whole, tail = tails.split(entries(["all_reduce", "broadcast"] * 20))

    assert len(whole) == 16
    assert tail is not None
    assert {kind["op"] for kind in tail["kinds"]} == {"all_reduce", "broadcast"}
    assert [place[0] for place in tail["calls"]] == list(range(1, 25))
    assert len(json.dumps(tail)) < len(json.dumps(whole)) / 2


def test_old_call_that_is_still_pending_stays_whole() -> None:
    recorded = entries(["all_reduce"] * 40)
    recorded[10]["retired"] = False

    whole, tail = tails.split(recorded)

    assert whole[0]["seq"] == 11
    assert tail is not None
    assert tail["calls"][-1][0] == 10


def test_too_many_distinct_calls_cost_the_oldest() -> None:
    _, tail = tails.split(entries([f"op_{number}" for number in range(64)]))

    assert tail is not None
    assert len(tail["kinds"]) == tails.MAX_KINDS
    assert tail["calls"][-1][0] == 48


def payload(**more: Any) -> GroupPayload:
    whole, tail = tails.split(entries(["all_reduce", "broadcast"] * 20, pending=1))
    group = {"name": "0", "ranks": "0-1", "counter": 40, "entries": whole, "tail": tail}
    group |= {"dumped_ns": SECOND, "dumped_counter": 40, **more}
    return msgspec.json.decode(json.dumps(group).encode(), type=GroupPayload)


def test_tail_travels_while_the_record_is_current() -> None:
    beat = ranks._group_beat(payload(), "gid", 2 * SECOND)
    moved = ranks._group_beat(payload(dumped_counter=39), "gid", 2 * SECOND)

    assert beat.tail is not None
    assert beat.tail.calls[0][0] == 1
    assert beat.tail.kinds[beat.tail.calls[0][1]].op == "all_reduce"
    assert moved.tail is None


def test_forged_tail_points_nowhere() -> None:
    forged = {"calls": [[1, 5], [2, -1], [3, 0]], "kinds": [{"seq": 1, "op": "x", "retired": True}]}

    beat = ranks._group_beat(payload(tail=forged), "gid", 2 * SECOND)

    assert beat.tail is not None
    assert beat.tail.calls == ((3, 0),)
