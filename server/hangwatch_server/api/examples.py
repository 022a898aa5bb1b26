"""Examples for the OpenAPI document; a test holds each against its response model."""

from __future__ import annotations

from typing import Any

Json = Any  # an example is free JSON by nature
Responses = dict[int | str, dict[str, Any]]  # FastAPI's own type for route responses

_TIME = "2026-11-20T18:00:03Z"
VERDICT: Json = {
    "job": "b3f1c07a9d24",
    "name": "gpt-7b",
    "attempt": 1,
    "index": 42,
    "state": "hung",
    "kind": "missing_ranks",
    "confidence": 0.94,
    "since": _TIME,
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
JOB: Json = {
    "id": "b3f1c07a9d24",
    "name": "gpt-7b",
    "attempt": 1,
    "world_size": 8,
    "reporting": 8,
    "state": "hung",
    "verdict": VERDICT,
    "nodes": ["node-a", "node-b"],
    "depth": "probe",
    "first_seen": "2026-11-20T17:02:11Z",
    "last_seen": _TIME,
    "progress_age_s": 12.4,
    "script": "train.py",
    "step": 1830,
    "is_live": True,
}
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
    "requested_at": _TIME,
    "requested_by": "hangwatch",
    "has_stacks": True,
    "has_entries": True,
    "reason": "",
    "remedy": "",
}
PATH: Json = VERDICT["path"]
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
TIMELINE_POINT: Json = {
    "ago_s": 30.0,
    "calls_per_s": 41.5,
    "state": "healthy",
    "phase": "checkpoint",
    "attempt": 1,
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
DEPTH: Json = {
    "nodes": ["node-a", "node-b"],
    "ranks": 8,
    "reporting": 8,
    "depth": "probe",
    "link": "live",
    "lacks": [],
}
HOLD: Json = {"evidence_stored": True, "state": "hung", "incident": "i_7c2e"}
_PART: Json = {
    "rank": 5,
    "node": "node-b",
    "pid": 812,
    "has_stacks": True,
    "has_entries": False,
    "reason": "",
    "remedy": "",
}
CAPTURE: Json = {
    "id": "c_91d2",
    "job": "b3f1c07a9d24",
    "attempt": 1,
    "incident": "i_7c2e",
    "state": "complete",
    "requested_at": _TIME,
    "requested_by": "alice",
    "ranks": "5",
    "kinds": ["stacks"],
    "native": False,
    "parts": [_PART],
}
CAPTURE_TEXT = (
    "rank 5, 1 rank, dataloader\n    __getitem__ (train.py:88)\n    step (train.py:112)\n"
)
TREE: Json = {
    "capture": "c_91d2",
    "roots": [
        {
            "name": "main",
            "file": "train.py",
            "line": 140,
            "ranks": "5",
            "count": 1,
            "is_framework": False,
            "is_native": False,
            "is_frozen": False,
            "moved": "5",
            "signatures": ["9f86d081884c"],
            "earlier": [
                {
                    "ranks": "5",
                    "count": 1,
                    "where": "train.py:141 in train",
                    "leaf": "all_reduce",
                }
            ],
            "children": [],
        }
    ],
    "classes": [
        {
            "signature": "9f86d081884c",
            "ranks": "5",
            "count": 1,
            "activity": "dataloader",
            "where": "train.py:88 in __getitem__",
            "frames": [{"name": "__getitem__", "file": "train.py", "line": 88, "is_native": False}],
            "is_frozen": True,
        }
    ],
    "missing": [],
    "before": "c_91d1",
    "sources": [
        {
            "file": "/home/ada/train.py",
            "line": 88,
            "first": 87,
            "lines": ["with self.lock:", "    return decode(self.storage.read(path))"],
        }
    ],
}
COMPARISON: Json = {
    "before": {**CAPTURE, "id": "c_91d1", "parts": []},
    "after": {**CAPTURE, "parts": []},
    "moved": "5",
    "frozen": "0-4,6-7",
    "only_before": "",
    "only_after": "",
    "moves": [
        {
            "ranks": "5",
            "count": 1,
            "before": "train.py:141 in train, inside all_reduce",
            "after": "train.py:88 in __getitem__",
            "is_frozen": False,
            "signature": "9f86d081884c",
        }
    ],
}
SPEEDSCOPE: Json = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "name": "c_91d2",
    "exporter": "hangwatch",
    "activeProfileIndex": 0,
    "shared": {
        "frames": [
            {"name": "main", "file": "train.py", "line": 140},
            {"name": "[rank 5 (1)]"},
        ]
    },
    "profiles": [
        {
            "type": "sampled",
            "name": "ranks",
            "unit": "none",
            "startValue": 0,
            "endValue": 1,
            "samples": [[0, 1]],
            "weights": [1],
        }
    ],
}
CHROME_TRACE: Json = {
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "ranks"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "rank 5 (1)"}},
        {
            "ph": "X",
            "name": "main",
            "cat": "python",
            "pid": 1,
            "tid": 1,
            "ts": 0,
            "dur": 1000000,
            "args": {"file": "train.py", "line": 140, "ranks": "5"},
        },
    ],
    "displayTimeUnit": "ms",
    "otherData": {"capture": "c_91d2"},
}
REPORT: Json = {
    "jobs": [
        {
            "name": "nccl_trace",
            "outcome": "hang",
            "verdict": {**VERDICT, "job": "", "index": 0, "incident": None},
            "dumps": "0-7",
            "stacks": "",
            "tree": None,
            "notes": [],
        }
    ],
    "files": [
        {
            "name": "nccl_trace_rank_5",
            "size_bytes": 48211,
            "kind": "flight recorder",
            "rank": 5,
            "is_used": True,
            "note": "",
            "remedy": "",
        }
    ],
}
INCIDENT: Json = {
    "id": "i_7c2e",
    "job": "b3f1c07a9d24",
    "job_name": "gpt-7b",
    "attempt": 1,
    "state": "confirmed",
    "kind": "missing_ranks",
    "summary": VERDICT["summary"],
    "culprit_ranks": "5",
    "culprit_nodes": ["node-b"],
    "opened_at": _TIME,
    "confirmed_at": "2026-11-20T18:00:08Z",
    "ended_at": None,
    "end_reason": "",
    "acknowledged_by": "",
    "acknowledged_at": None,
    "snoozed_until": None,
    "verdict": VERDICT,
    "captures": ["c_91d2"],
    "history": [
        {"at": _TIME, "old": "", "new": "open", "why": "stalled for 10 s", "by": ""},
    ],
    "is_snoozed_to_end": False,
    "comments": [{"at": "2026-11-20T18:02:40Z", "by": "alice", "text": "drained node-b"}],
}
MOMENT: Json = {
    "at": _TIME,
    "why": "opened",
    "groups": [{**GROUP, "members": []}],
    "groups_total": 12,
    "ranks": [
        {
            "rank": 5,
            "node": "node-b",
            "link": "live",
            "age_s": 0.6,
            "depth": "probe",
            "pid": 812,
            "step": 1830,
            "phase": "",
            "process": RANK_DETAIL["process"],
            "gpu": None,
            "lacks": [],
        }
    ],
    "lanes": [
        {
            "gid": "5d41402abc4b",
            "group": "dp-1",
            "ranks": "5",
            "calls": [
                {
                    "seq": 28,
                    "op": "all_reduce",
                    "shape": "[1024] float",
                    "is_finished": True,
                    "site": "",
                }
            ],
            "entered": 28,
        }
    ],
    "nodes": [],
    "nodes_total": 2,
    "pairs": [
        {
            "group": "pp",
            "sender": 1,
            "receiver": 2,
            "sends": {"posted": 40, "finished": 40},
            "receives": {"posted": 41, "finished": 40},
            "calls": [
                {
                    "rank": 2,
                    "is_send": False,
                    "number": 41,
                    "tag": 7,
                    "waits_s": 41.0,
                    "is_blocking": True,
                    "site": "",
                }
            ],
        }
    ],
}
NODE: Json = {
    "name": "node-b",
    "link": "live",
    "version": "0.1.0",
    "age_s": 0.4,
    "ranks": 4,
    "jobs": ["b3f1c07a9d24"],
    "stacks": "",
    "stacks_remedy": "",
    "depth": "probe",
    "incidents_30d": 1,
    "dropped": 0,
    "last_seen": _TIME,
    "gpu_hours_lost_30d": 1.4,
    "last_incident_at": _TIME,
    "clock_ahead_s": None,
}
TOKEN: Json = {
    "id": "t_51ab",
    "name": "node-b",
    "prefix": "0a1b2c3d",
    "scopes": ["agent"],
    "role": "agent",
    "node": "node-b",
    "created_at": _TIME,
    "last_used_at": None,
    "expires_at": None,
    "is_revoked": False,
    "jobs": "",
    "nodes": "",
    "uses_left": None,
    "may_replace": False,
    "enrolled_by": None,
}
NEW_TOKEN: Json = {**TOKEN, "token": "hw_0a1b2c3d_…"}
AUDIT: Json = {
    "at": _TIME,
    "who": "alice",
    "action": "capture",
    "subject": "job:b3f1c07a9d24",
    "detail": "c_91d2",
}
SETTING: Json = {
    "key": "port",
    "value": "8042",
    "source": "environment HANGWATCH_PORT",
    "is_default": False,
    "help": "port to listen on",
    "why": "unassigned, and free on most machines",
}
HEALTH: Json = {"status": "ok", "version": "0.1.0"}
READINESS: Json = {"status": "ready", "database": "ok", "background": "ok"}


def of(example: Json, *, status: int = 200) -> Responses:
    return {status: {"content": {"application/json": {"example": example}}}}


def page(item: Json) -> Responses:
    return of({"items": [item], "next": None})


def text(example: str, *, media_type: str = "text/plain") -> Responses:
    return {200: {"content": {media_type: {"example": example}}}}
