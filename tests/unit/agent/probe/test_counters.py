"""What is believed of the counters: NCCL's status numbers after sends."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from hangwatch_agent.probe import calls, counters, groups


def group(raw: int) -> tuple[Any, groups.Group]:
    made = groups.Group("0", (0, 1, 2), 1, is_watched=True)
    made.backend = "nccl"
    return SimpleNamespace(_get_sequence_number_for_group=lambda: raw), made


def read(pair: tuple[Any, groups.Group], completed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    status = {"0": {"last_completed_collective": str(completed), "last_started_collective": "-1"}}
    answer = json.dumps({"pg_status": status}).encode()
    torchs = SimpleNamespace(_dump_nccl_trace_json=lambda *_: answer)
    monkeypatch.setitem(sys.modules, counters.BINDINGS, torchs)  # type: ignore[arg-type]
    source = counters.Counters({})
    source.nccl_names["0"] = "0"
    source.read([pair], 1)


def test_completed_number_counts_while_there_are_no_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = group(12)

    read(pair, 11, monkeypatch)

    assert (pair[1].seq, pair[1].finished, pair[1].started) == (12, 11, None)


@pytest.mark.parametrize("completed", [3, 5000])
def test_number_of_a_send_is_never_taken_for_a_collectives(
    monkeypatch: pytest.MonkeyPatch, completed: int
) -> None:
    pair = group(1000)
    pair[1].uncounted = 3

    read(pair, completed, monkeypatch)

    assert (pair[1].seq, pair[1].finished) == (1000, None)


def test_number_beyond_the_newest_collective_must_be_a_sends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = group(10)  # a send issued from C++ passed the wrappers

    read(pair, 40, monkeypatch)

    assert pair[1].finished is None


def test_recorded_sends_are_numbered_within_their_pair() -> None:
    made = groups.Group("0", (0, 1, 2), 1, is_watched=True)
    made.dumped_counter = made.counter = 9
    made.p2p = [
        {"op": "send", "peer": 1, "retired": True},
        {"op": "send", "peer": 1, "retired": False},
        {"op": "recv", "peer": 2, "retired": False},
        {"op": "send", "peer": 1, "retired": False},
    ]
    table = SimpleNamespace(live=lambda: [(None, made)])
    followed = calls.Calls(table, {})  # type: ignore[arg-type]
    for peer, is_send, posted in ((1, True, 5), (2, False, 1)):
        channel = followed._channels.setdefault(("0", 1, peer, is_send), calls.Channel())
        channel.posted = posted

    found = followed.recorded()
    counts = followed.counts([], found)

    assert [(one["op"], one["peer"], one["seq"]) for one in found] == [
        ("send", 1, 4),
        ("recv", 2, 1),
        ("send", 1, 5),
    ]
    assert [(one["posted"], one["done"]) for one in counts] == [(5, 3), (1, 0)]


def test_recorded_sends_are_forgotten_when_the_group_moves_on() -> None:
    made = groups.Group("0", (0, 1), 1, is_watched=True)
    made.p2p = [{"op": "send", "peer": 1, "retired": False}]
    made.dumped_counter, made.counter = 9, 10
    table = SimpleNamespace(live=lambda: [(None, made)])

    assert calls.Calls(table, {}).recorded() == []  # type: ignore[arg-type]
