"""A rank in its list, in all detail, and its captures."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import TIME, Json

RANK: Json = {
    "rank": 5,
    "node": "node-b",
    "local_rank": 1,
    "pid": 812,
    "state": "culprit",
    "link": "live",
    "depth": "probe",
    "age_s": 0.6,
    "process_state": "S",
    "step": 1830,
    "phase": "",
    "waits_in": "",
    "waits_s": None,
    "condition": "in_dataloader",
    "where": "train.py:88 in __getitem__",
    "cpu_share": 0.0,
    "gpu": None,
    "lacks": [],
    "signature": "9f86d081884c7d65",
}
RANK_DETAIL: Json = {
    "job": "b3f1c07a9d24",
    "attempt": 1,
    "world_size": 8,
    "row": RANK,
    "script": "train.py",
    "inner_pid": None,
    "phase_s": 0.0,
    "phase_limit_s": None,
    "beat_age_s": 0.4,
    "is_rank_certain": True,
    "process": {
        "state": "S",
        "wchan": "pipe_read",
        "cpu_s": 512.4,
        "main_cpu_share": 0.0,
        "main_still_s": 12.4,
        "main_delay_share": 0.0,
        "io_bytes": 81788928,
        "threads": 9,
        "exit_code": None,
        "exit_signal": None,
        "exit_reason": "",
        "is_unresponsive": False,
        "is_gil_held": False,
        "children": [
            {
                "pid": 831,
                "name": "python",
                "role": "loader",
                "state": "D",
                "wchan": "nfs4_wait",
                "cpu_share": 0.0,
                "parent": 812,
            }
        ],
    },
    "gpu": None,
    "stack": {
        "age_s": 2.1,
        "where": "train.py:88 in __getitem__",
        "leaf": "selectors.py:415 in select",
        "activity": "dataloader",
        "detail": "waits for a batch from its loader workers",
        "still_captures": 3,
        "still_s": 10.2,
        "capture": "c_91d2",
    },
    "groups": [
        {
            "gid": "5d41402abc4b",
            "name": "dp-1",
            "description": "data parallel",
            "backend": "nccl",
            "size": 4,
            "seq": 28,
            "at": 29,
            "behind": 1,
            "op": "",
            "stall_s": 12.4,
        }
    ],
    "calls": [
        {
            "gid": "5d41402abc4b",
            "group": "dp-1",
            "op": "all_reduce",
            "seq": 28,
            "sizes": "[1024, 1024] Float",
            "is_finished": True,
            "peer": None,
            "root": None,
            "site": "",
            "age_s": None,
        }
    ],
    "waits": [],
}
RANK_CAPTURE: Json = {
    "capture": "c_91d2",
    "attempt": 1,
    "incident": "i_7c2e",
    "requested_at": TIME,
    "requested_by": "hangwatch",
    "has_stacks": True,
    "has_entries": True,
    "reason": "",
    "remedy": "",
}
DEPTH: Json = {
    "nodes": ["node-a", "node-b"],
    "ranks": 8,
    "reporting": 8,
    "depth": "probe",
    "link": "live",
    "lacks": [],
}
