"""How often somebody may do a thing: a bucket of tries per key, refilled at a steady rate.

Bounded: the keys that were used longest ago are forgotten first, and a forgotten key begins with a
full bucket. Monotonic time is passed in.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

MAX_KEYS = 10_000
IPV6_PREFIX = 64  # one subscriber's network: each has 2**64 addresses to try from


class Throttle:
    """`per_minute` tries a minute, and as many at once after a rest; 0 allows any number."""

    def __init__(self, per_minute: float) -> None:
        self._most = per_minute
        self._per_s = per_minute / 60
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tries, as of when

    def take(self, key: str, now_s: float) -> float:
        """Use one try and return 0, or return the seconds until there is one again."""
        if self._most <= 0:
            return 0.0
        left, at_s = self._left.pop(key, (max(1.0, self._most), now_s))
        left = min(max(1.0, self._most), left + (now_s - at_s) * self._per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._left[key] = (left - 1 if left >= 1 else left, now_s)
        if len(self._left) > MAX_KEYS:
            self._left.popitem(last=False)
        return wait_s


def network(address: str) -> str:
    """What stands for a caller's address: itself, and of IPv6 the network that it is in."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False))
