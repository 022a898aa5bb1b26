"""What peers prove about a rank: a collective that needs everybody, once finished anywhere, was
entered by all.

Only names that are known for it prove that. all_to_all is no proof: with empty splits it can finish
without a peer. Rooted collectives are none either: some members legitimately leave early.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

ROOT_SENDS = frozenset({"broadcast", "scatter"})
ROOT_RECEIVES = frozenset({"reduce", "gather"})
ROOTED = ROOT_SENDS | ROOT_RECEIVES
# "all_reduce", "_allgather_base", "reduce_scatter_tensor_coalesced", "nccl:all_gather", "barrier".
_NEEDS_EVERYBODY = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|barrier")


class Bound(NamedTuple):
    """Everybody entered `seq`; the newest report that shows it finished is `age_s` old."""

    seq: int
    age_s: float


NOTHING = Bound(-1, float("inf"))


@lru_cache(maxsize=256)
def proves_arrival(op: str) -> bool:
    return _NEEDS_EVERYBODY.search(op) is not None
