"""A capture, its merged stacks and their exports."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import TIME, Json

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
    "requested_at": TIME,
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
