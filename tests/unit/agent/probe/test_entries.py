"""When dumps are taken."""

from __future__ import annotations

from hangwatch_agent.probe import entries

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
