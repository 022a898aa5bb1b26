"""A command that was run on an incident."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import Json

ACTION: Json = {
    "incident": "i_7c2e",
    "job": "b3f1c07a9d24",
    "state": "done",
    "command": ["/etc/hangwatch/actions/slurm_action.py", "--drain"],
    "why": "the incident stands, and nobody looks after it",
    "begun_at": "2026-11-20T18:00:48.210Z",
    "ended_at": "2026-11-20T18:00:48.630Z",
    "exit_code": 0,
    "output": "drained node-b: hangwatch: incident i_7c2e of gpt-7b\n",
}
