"""Loops of any pause wake at common moments, and pauses keep about their length."""

from __future__ import annotations

import pytest

from hangwatch_agent.rhythm import TICK_S, wait_s


@pytest.mark.parametrize("pause_s", [0.25, 0.5, 1.0, 2.0, 2.7, 30.0])
@pytest.mark.parametrize("now_s", [1000.0, 1000.004, 1000.1249, 1000.1251, 1000.2499999])
def test_wait_ends_at_a_tick_and_differs_from_the_pause_by_half_of_one(
    pause_s: float, now_s: float
) -> None:
    waited_s = wait_s(pause_s, now_s)

    ticks = (now_s + waited_s) / TICK_S
    assert ticks == pytest.approx(round(ticks), abs=1e-6)
    assert abs(waited_s - pause_s) <= TICK_S / 2 + 1e-6


def test_pause_shorter_than_a_tick_is_kept() -> None:
    assert wait_s(0.05, 1000.1) == 0.05
