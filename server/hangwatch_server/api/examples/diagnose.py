"""The report on files that ranks left behind."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import Json
from hangwatch_server.api.examples.verdicts import VERDICT

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
