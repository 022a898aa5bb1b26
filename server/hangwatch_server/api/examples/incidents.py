"""An incident, and the moment at which it opened."""

from __future__ import annotations

from hangwatch_server.api.examples.groups import GROUP
from hangwatch_server.api.examples.ranks import RANK_DETAIL
from hangwatch_server.api.examples.responses import TIME, Json
from hangwatch_server.api.examples.verdicts import VERDICT

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
    "opened_at": TIME,
    "confirmed_at": "2026-11-20T18:00:08Z",
    "ended_at": None,
    "end_reason": "",
    "acknowledged_by": "",
    "acknowledged_at": None,
    "snoozed_until": None,
    "verdict": VERDICT,
    "captures": ["c_91d2"],
    "history": [
        {"at": TIME, "old": "", "new": "open", "why": "stalled for 10 s", "by": ""},
    ],
    "is_snoozed_to_end": False,
    "comments": [{"at": "2026-11-20T18:02:40Z", "by": "alice", "text": "drained node-b"}],
}
MOMENT: Json = {
    "at": TIME,
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
