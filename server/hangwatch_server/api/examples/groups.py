"""A process group, the mesh of all, and a rank that is behind."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import Json

GROUP: Json = {
    "gid": "5d41402abc4b",
    "name": "dp-1",
    "description": "data parallel",
    "backend": "nccl",
    "ranks": "1,3,5,7",
    "size": 4,
    "epoch": 1,
    "at": 29,
    "op": "all_reduce",
    "behind": "5",
    "waiting": "1,3,7",
    "stalled_s": 12.4,
    "family": "dp",
    "payload": "26 MB float",
    "members": [
        {"rank": 1, "seq": 29, "op": "all_reduce", "is_waiting": True, "is_behind": False},
        {"rank": 5, "seq": 28, "op": "", "is_waiting": False, "is_behind": True},
    ],
}
MESH: Json = {
    "world_size": 8,
    "axes": [
        {"name": "tp", "size": 2, "stride": 1, "groups": 4, "family": "tp"},
        {"name": "dp", "size": 4, "stride": 2, "groups": 2, "family": "dp"},
    ],
    "families": [
        {"name": "dp", "size": 4, "count": 2, "at_least": 28, "at_most": 29, "stalled": 1}
    ],
}
LAG: Json = {"rank": 5, "gid": "5d41402abc4b", "seq": 28, "lag": 1}
