"""How often somebody may try, and that remembering it costs little."""

from __future__ import annotations

import pytest

from hangwatch_server.errors import TooManyError
from hangwatch_server.security import throttle
from hangwatch_server.security.guard import Guard
from hangwatch_server.security.throttle import Throttle


def test_as_many_tries_at_once_as_in_a_minute_and_then_one_at_a_time() -> None:
    tries = Throttle(per_minute=6)

    assert [tries.take("a", now_s=0.0) for _ in range(6)] == [0.0] * 6
    assert tries.take("a", now_s=0.0) == pytest.approx(10.0)
    assert tries.take("a", now_s=9.0) == pytest.approx(1.0)
    assert tries.take("a", now_s=10.5) == 0.0
    assert tries.take("a", now_s=10.5) > 0


def test_one_key_does_not_use_up_the_tries_of_another() -> None:
    tries = Throttle(per_minute=1)
    tries.take("a", now_s=0.0)

    assert tries.take("a", now_s=0.0) > 0
    assert tries.take("b", now_s=0.0) == 0.0


def test_no_limit_is_no_limit() -> None:
    tries = Throttle(per_minute=0)

    assert {tries.take("a", now_s=0.0) for _ in range(1000)} == {0.0}


def test_a_flood_of_keys_is_forgotten_oldest_first() -> None:
    tries = Throttle(per_minute=1)

    for number in range(throttle.MAX_KEYS + 10):
        tries.take(str(number), now_s=0.0)

    assert len(tries._left) == throttle.MAX_KEYS
    assert tries.take(str(throttle.MAX_KEYS + 9), now_s=0.0) > 0
    assert tries.take("0", now_s=0.0) == 0.0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unix", "unix"),
    ],
)
def test_addresses_of_one_ipv6_network_count_together(address: str, network: str) -> None:
    assert throttle.network(address) == network


def test_a_refusal_says_when_to_try_again() -> None:
    guard = Guard(failures_per_minute=1, captures_per_minute=1, clock=lambda: 0.0)
    guard.failed("192.0.2.7")
    guard.capture("token:a")

    with pytest.raises(TooManyError, match=r"192\.0\.2\.7.*60 s") as caught:
        guard.failed("192.0.2.7")
    assert caught.value.retry_after_s == pytest.approx(60)
    with pytest.raises(TooManyError, match="captures"):
        guard.capture("token:a")
