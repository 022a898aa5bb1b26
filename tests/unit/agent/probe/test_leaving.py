"""Groups that are being destroyed while a collective in them is open."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.recorded import Recorder

from hangwatch_agent.probe import counters, entries, groups, leaving

S = 1_000_000_000


def group(backend: str = "gloo") -> tuple[Any, groups.Group]:
    made = groups.Group("0", (0, 1, 2), 1, is_watched=True)
    made.backend, made.counter, made.moved_ns = backend, 21, 90 * S
    return None, made


def watching(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> leaving.Leaving:
    torchs = SimpleNamespace(_dump_fr_trace_json=lambda *_: recorder.dump())
    monkeypatch.setitem(sys.modules, counters.BINDINGS, torchs)  # type: ignore[arg-type]
    lacks: dict[str, str] = {}
    return leaving.Leaving(entries.Entries(counters.Counters(lacks), lacks))


def test_open_collective_keeps_its_group_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder("gloo")
    recorder.collective("0", 20)
    recorder.collective("0", 21, state="scheduled")
    watched, pair = watching(recorder, monkeypatch), group()
    watched.remember([pair], 100 * S)

    early = watched.pending(101 * S)
    late = watched.pending(102 * S)

    assert early == []
    assert late == [pair[1]]
    assert (pair[1].seq, pair[1].dumped_counter, pair[1].moved_ns) == (21, 21, 90 * S)


def test_group_whose_calls_have_all_ended_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder("gloo")
    recorder.collective("0", 21)
    watched, pair = watching(recorder, monkeypatch), group()
    watched.remember([pair], 100 * S)

    assert watched.pending(102 * S) == []
    assert watched.pending(104 * S) == []


def test_collective_that_nccl_aborted_is_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder("nccl")
    recorder.collective("0", 21, state="scheduled")
    watched = watching(recorder, monkeypatch)
    watched.remember([group("nccl")], 100 * S)

    assert watched.pending(102 * S) == []


def test_new_group_ends_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder("gloo")
    recorder.collective("0", 21, state="scheduled")
    watched, pair = watching(recorder, monkeypatch), group()
    watched.remember([pair], 100 * S)
    assert watched.pending(102 * S)

    watched.remember([], 103 * S)

    assert watched.pending(106 * S) == []
