"""Fields of a request that mean the same in several calls. Types only."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic.config import JsonDict

# As clients may check them; what does not follow them is refused in better words by its reader.
DURATION: JsonDict = {"pattern": r"^\s*\d{1,9}(\.\d{1,3})?(ms|s|m|h|d)?\s*$"}
RANGE: JsonDict = {"pattern": r"^[0-9,:\s-]*$"}
CURSOR: JsonDict = {"pattern": r"^[A-Za-z0-9_-]+$"}

Wait = Annotated[
    str,
    Query(
        max_length=20,
        description="At most 2m.",
        examples=["30s"],
        json_schema_extra=DURATION,
    ),
]
Ranks = Annotated[
    str,
    Query(
        max_length=10_000,
        description="Rank range; absent for all.",
        examples=["0-3,7"],
        json_schema_extra=RANGE,
    ),
]
Native = Annotated[
    bool, Query(description="With C and C++ frames, where the capture was asked to take them.")
]
NativeIfTaken = Annotated[
    bool | None, Query(description="With C and C++ frames; absent: as the capture was taken.")
]
Before = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Id of the capture to compare with; absent: the one before it, if any.",
    ),
]
Framework = Annotated[
    bool, Query(description="With the frames of torch, Python and other libraries.")
]
# By name, since each means the same in every path.
IN_PATHS = {
    "job_id": "Id of the job: the `id` of `GET /api/v1/jobs`.",
    "gid": "Id of the group: the `gid` of the job's groups.",
    "rank": "Number of the rank, from 0.",
    "capture_id": "Id of the capture, as the call that asked for it answered.",
    "incident_id": "Id of the incident: the `incident` of a verdict.",
    "silence_id": "Id of the silence, as the list shows it.",
    "delivery_id": "Id of the delivery, which is that of its message: `webhook-id` of a webhook.",
    "channel_id": "Id of the channel, as the list shows it.",
    "token_id": "Id of the token, as `hangwatch token list` shows it.",
    "session_id": "Id of the session: the `id` of `GET /api/v1/sessions`.",
    "name": "The name, as the list shows it.",
}
