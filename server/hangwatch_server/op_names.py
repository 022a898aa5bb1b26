"""What the name of a collective tells: whether one rank is its root, and what its end proves.

Only names that are known for it prove that everybody has come. all_to_all is no proof: with empty
splits it can finish without a peer. Rooted collectives are none either: some members legitimately
leave early.
"""

from __future__ import annotations

import re
from functools import lru_cache

ROOT_SENDS = frozenset({"broadcast", "scatter"})
ROOT_RECEIVES = frozenset({"reduce", "gather"})
ROOTED = ROOT_SENDS | ROOT_RECEIVES
# "all_reduce", "_allgather_base", "reduce_scatter_tensor_coalesced", "nccl:all_gather", "barrier".
_NEEDS_EVERYBODY = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|barrier")


@lru_cache(maxsize=256)
def proves_arrival(op: str) -> bool:
    """Whether no member can finish it before all have entered it."""
    return _NEEDS_EVERYBODY.search(op) is not None
