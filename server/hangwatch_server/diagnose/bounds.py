"""What peers prove about a rank: a collective that needs everybody, once finished anywhere, was
entered by all. Which collectives these are, their names tell (`op_names`).
"""

from __future__ import annotations

from typing import NamedTuple


class Bound(NamedTuple):
    """Everybody entered `seq`; the newest report that shows it finished is `age_s` old."""

    seq: int
    age_s: float


NOTHING = Bound(-1, float("inf"))
