"""Files for speedscope and Perfetto hold to what their readers ask for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.server.stacks import recorded

from hangwatch_server import stacks

# From https://www.speedscope.app/file-format-schema.json: what a file must have, and may not.
TOP = {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
FRAME = {"name", "file", "line", "col"}
SAMPLED = {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
UNITS = {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}
MAIN = ("main", "/home/u/train.py", 5)


def parts() -> list[stacks.RankStacks]:
    waiting = ("all_reduce", "/x/torch/distributed/distributed_c10d.py", 3252)
    ranks = [stacks.RankStacks(rank, (recorded.stack(waiting, MAIN),)) for rank in range(3)]
    worker = recorded.stack(("read", "/home/u/data.py", 1), pid=101, role="loader")
    odd = recorded.stack(("load", "/home/u/train.py", 9), MAIN)
    return [*ranks, stacks.RankStacks(3, (odd, worker)), stacks.RankStacks(4, ())]


def check_speedscope(document: dict[str, Any]) -> None:
    assert set(document) <= TOP
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(set(frame) <= FRAME and isinstance(frame["name"], str) for frame in frames)
    assert all(frame.get("line", 1) >= 1 for frame in frames)
    for profile in document["profiles"]:
        assert set(profile) == SAMPLED
        assert profile["type"] == "sampled"
        assert profile["unit"] in UNITS
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        assert all(0 <= i < len(frames) for sample in profile["samples"] for i in sample)


def test_a_speedscope_file_holds_to_its_schema() -> None:
    document = stacks.speedscope(parts(), "c1")

    check_speedscope(document)
    assert [profile["name"] for profile in document["profiles"]] == ["ranks", "loader workers"]


def test_a_sample_goes_from_the_outside_in_and_weighs_as_many_ranks() -> None:
    document = stacks.speedscope(parts(), "c1")

    names = [frame["name"] for frame in document["shared"]["frames"]]
    ranks = document["profiles"][0]
    told = [[names[index] for index in sample] for sample in ranks["samples"]]
    assert told == [["main", "load", "[rank 3 (1)]"], ["main", "all_reduce", "[ranks 0-2 (3)]"]]
    assert ranks["weights"] == [1, 3]


@pytest.mark.parametrize("native", [False, True])
def test_native_frames_come_on_request(native: bool) -> None:
    part = stacks.RankStacks(0, (recorded.process("allreduce_native"),))

    document = stacks.speedscope([part], "c1", native=native)

    check_speedscope(document)
    assert any("wait" in f["name"] for f in document["shared"]["frames"]) == native


def test_a_trace_nests_the_frames_of_each_distinct_stack() -> None:
    events = stacks.chrome_trace(parts(), "c1")["traceEvents"]

    slices = [event for event in events if event["ph"] == "X"]
    for inner, outer in zip(slices[1:], slices, strict=False):
        if (inner["pid"], inner["tid"]) == (outer["pid"], outer["tid"]):
            assert outer["ts"] < inner["ts"]
            assert inner["ts"] + inner["dur"] < outer["ts"] + outer["dur"]
    assert [event["name"] for event in slices] == ["main", "load", "main", "all_reduce", "read"]


def test_a_trace_names_its_tracks_by_their_ranks() -> None:
    events = stacks.chrome_trace(parts(), "c1")["traceEvents"]

    names = [
        (event["name"], event["args"]["name"])
        for event in events
        if "name" in event.get("args", {})
    ]
    assert names == [
        ("process_name", "ranks"),
        ("thread_name", "rank 3 (1)"),
        ("thread_name", "ranks 0-2 (3)"),
        ("process_name", "loader workers"),
        ("thread_name", "rank 3 (1)"),
    ]


def test_nothing_captured_is_a_file_without_profiles() -> None:
    document = stacks.speedscope([], "c1")

    check_speedscope(document)
    assert document["profiles"] == []
    assert stacks.chrome_trace([], "c1")["traceEvents"] == []
