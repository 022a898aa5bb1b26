"""A verdict, its path, and a hold."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import TIME, Json

VERDICT: Json = {
    "job": "b3f1c07a9d24",
    "name": "gpt-7b",
    "attempt": 1,
    "index": 42,
    "state": "hung",
    "kind": "missing_ranks",
    "confidence": 0.94,
    "since": TIME,
    "stalled_s": 12.4,
    "summary": "Rank 5 (node-b, pid 812) never entered all_reduce #29 of group dp-1; 7 ranks have "
    "waited 12 s. It is in its dataloader: train.py:88 in __getitem__.",
    "group": {"id": "5d41402abc4b", "name": "dp-1", "ranks": "1,3,5,7"},
    "seq": 29,
    "op": "all_reduce",
    "culprits": [
        {
            "rank": 5,
            "node": "node-b",
            "pid": 812,
            "gpu": None,
            "condition": "in_dataloader",
            "where": "train.py:88 in __getitem__",
            "detail": "",
        }
    ],
    "culprit_ranks": "5",
    "waiting": "0-4,6-7",
    "path": [
        {"rank": 0, "waits_in": "tp-0 all_reduce #29", "for": [1]},
        {"rank": 1, "waits_in": "dp-1 all_reduce #29", "for": [5]},
    ],
    "edges": [
        {
            "ranks": "1,3,7",
            "call": "dp-1 all_reduce #29",
            "missing": "5",
            "where": "train.py:112 in step",
        }
    ],
    "cycle": [],
    "sides": [],
    "evidence": [
        {"kind": "counters", "text": "Rank 5 is at #28, 3 ranks are in #29.", "capture": ""},
        {"kind": "stack", "text": "train.py:88 in __getitem__", "capture": "c_91d2"},
    ],
    "hints": ["Look at the storage that rank 5 reads its samples from."],
    "coverage": {"reporting": 8, "world_size": 8, "silent": ""},
    "action": {"advice": "restart", "exclude_nodes": [], "evidence_stored": True},
    "limits": {
        "suspect_after_s": 10,
        "confirm_after_s": 15,
        "why": "3 x p99 (0.4 s) is under the 10 s floor",
    },
    "incident": "i_7c2e",
    "shift": None,
    "causes": [],
}
PATH: Json = VERDICT["path"]
HOLD: Json = {"evidence_stored": True, "state": "hung", "incident": "i_7c2e"}
