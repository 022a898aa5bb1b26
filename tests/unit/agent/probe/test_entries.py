"""When dumps are taken."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from tests.support.recorded import Recorder

from hangwatch_agent.probe import counters, entries, groups

S = 1_000_000_000


def test_dumps_come_at_two_and_four_seconds_then_every_ten() -> None:
    pace = entries.Pace()
    times = [half * S // 2 for half in range(1, 60)]

    taken = [now / S for now in times if pace.is_due(0, now)]

    assert taken == [2.0, 4.0, 14.0, 24.0]


def test_each_stall_starts_anew_and_movement_costs_no_dump() -> None:
    pace = entries.Pace()
    assert pace.is_due(0, 2 * S)

    moving = [pace.is_due(now, now + S) for now in range(3 * S, 9 * S, S)]

    assert moving == [False] * 6
    assert pace.is_due(9 * S, 11 * S)


def test_each_side_of_a_group_is_read_from_its_own_recorder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_gpu, on_cpu = Recorder("nccl"), Recorder("gloo")
    on_gpu.collective("0", 5000)
    on_cpu.collective("0", 7, "all_gather", state="scheduled")
    torchs = SimpleNamespace(
        _dump_fr_trace_json=lambda *_: on_cpu.dump(), _dump_nccl_trace_json=lambda *_: on_gpu.dump()
    )
    monkeypatch.setitem(sys.modules, counters.BINDINGS, torchs)  # type: ignore[arg-type]
    main = groups.Group("0", (0, 1), 1, is_watched=True)
    main.backend = "cpu:gloo,cuda:nccl"
    main.gloo_side = side = groups.Group("0/gloo", (0, 1), 1, is_watched=False)
    side.recorded_as, side.backend = "0", "gloo"
    lacks: dict[str, str] = {}

    entries.Entries(counters.Counters(lacks), lacks).take([(None, main), (None, side)], S)

    assert [entry["seq"] for entry in main.entries] == [5000]
    assert [(entry["seq"], entry["retired"]) for entry in side.entries] == [(7, False)]
