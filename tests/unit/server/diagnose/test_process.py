"""How far a rank's own account is trusted, by what the operating system says of its process."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_server.diagnose import diagnose
from hangwatch_server.diagnose.process import Fate, fate
from hangwatch_server.model import Condition, Link, RankView


def stopped(
    state: str,
    *,
    silent_s: float | None = None,
    still_s: float | None = None,
    is_being_read: bool = False,
) -> RankView:
    process = make.process(state, main_still_s=still_s, is_being_read=is_being_read)
    return make.rank(1, make.at("world", 5, 6), facts=process, beat_age_s=silent_s, age_s=0.0)


@pytest.mark.parametrize("state", ["T", "t"])
@pytest.mark.parametrize(
    ("silent_s", "still_s", "expected"),
    [
        (0.4, None, Fate.ALIVE),
        (30.0, 0.4, Fate.ALIVE),
        (1.9, 30.0, Fate.ALIVE),
        (2.1, None, Fate.STOPPED),
        (None, 2.1, Fate.STOPPED),
        (30.0, 30.0, Fate.STOPPED),
    ],
)
def test_process_is_stopped_once_neither_probe_nor_main_thread_has_run_for_two_seconds(
    state: str, silent_s: float | None, still_s: float | None, expected: Fate
) -> None:
    assert fate(stopped(state, silent_s=silent_s, still_s=still_s)) is expected


def test_without_a_clock_a_stop_by_signal_is_believed_and_a_tracers_is_not() -> None:
    assert fate(stopped("T")) is Fate.STOPPED
    assert fate(stopped("t")) is Fate.ALIVE


def test_stop_by_a_capture_of_ours_says_nothing_however_long_it_takes() -> None:
    assert fate(stopped("t", silent_s=9.0, still_s=9.0, is_being_read=True)) is Fate.ALIVE


@pytest.mark.parametrize("state", ["gone", "Z", "X"])
def test_process_that_ended_is_gone_whoever_is_heard(state: str) -> None:
    view = make.rank(1, facts=make.process(state), link=Link.LOST)

    assert fate(view) is Fate.GONE


def test_waiting_rank_that_somebody_looks_at_for_a_moment_is_not_named() -> None:
    waiting = [make.rank(0, make.at("world", 5, 6)), stopped("t", silent_s=0.5, still_s=0.1)]
    missing = make.rank(2, make.at("world", 5))

    found = diagnose(make.snapshot([*waiting, missing], [make.world(0, 1, 2)]))

    assert [item.culprit_ranks for item in found] == ["2"]


def test_rank_that_stays_stopped_inside_is_named() -> None:
    waiting = [make.rank(0, make.at("world", 5, 6)), stopped("T", silent_s=12.0, still_s=12.0)]

    found = diagnose(make.snapshot(waiting, [make.world(0, 1)]))[0]

    assert found.culprit_ranks == "1"
    assert found.culprits[0].condition is Condition.STOPPED
