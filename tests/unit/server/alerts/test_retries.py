"""When a message is tried again, and when it is given up."""

from __future__ import annotations

from hangwatch_server.alerts import retries


def delays(chance: float, first_s: float = 2.0) -> list[float]:
    found = [retries.delay_s(tries, first_s, chance) for tries in range(1, retries.MAX_TRIES + 1)]
    return [delay for delay in found if delay is not None]


def test_it_starts_within_two_seconds_and_goes_on_for_half_a_day() -> None:
    latest = delays(1.0)

    assert latest[:5] == [2, 4, 8, 16, 32]
    assert max(latest) == 3600
    assert 12 * 3600 < sum(delays(0.5)) < 13 * 3600


def test_chance_spreads_a_crowd_over_the_whole_delay() -> None:
    assert delays(0.25)[3] == 4.0


def test_it_is_given_up_in_the_end() -> None:
    assert retries.delay_s(retries.MAX_TRIES, 2.0, 0.5) is None


def test_a_receiver_is_not_asked_again_sooner_than_it_asked_for() -> None:
    assert retries.delay_s(1, 2.0, 0.5, asked_s=30.0) == 30.0


def test_a_receiver_cannot_put_an_alarm_off_for_a_day() -> None:
    assert retries.delay_s(1, 2.0, 0.5, asked_s=86400.0) == retries.LONGEST_ASKED_S
