"""Examples for the OpenAPI document; a test holds each against its response model."""

from hangwatch_server.api.examples.access import ENROLLED, SESSION
from hangwatch_server.api.examples.actions import ACTION
from hangwatch_server.api.examples.administration import AUDIT, NEW_TOKEN, SETTING, TOKEN
from hangwatch_server.api.examples.alerts import CANCELLED, DELIVERY, DELIVERY_SUMMARY, SILENCE
from hangwatch_server.api.examples.captures import (
    CAPTURE,
    CAPTURE_TEXT,
    CHROME_TRACE,
    COMPARISON,
    SPEEDSCOPE,
    TREE,
)
from hangwatch_server.api.examples.channels import CHANNEL, CHANNEL_KIND, CHANNEL_TRIAL
from hangwatch_server.api.examples.diagnose import REPORT
from hangwatch_server.api.examples.groups import GROUP, LAG, MESH
from hangwatch_server.api.examples.health import HEALTH, READINESS
from hangwatch_server.api.examples.incidents import INCIDENT, MOMENT
from hangwatch_server.api.examples.jobs import JOB, TIMELINE_POINT
from hangwatch_server.api.examples.nodes import NODE
from hangwatch_server.api.examples.ranks import DEPTH, RANK, RANK_CAPTURE, RANK_DETAIL
from hangwatch_server.api.examples.responses import Json, Responses, also_plain, of, page, text
from hangwatch_server.api.examples.verdicts import HOLD, PATH, VERDICT

__all__ = [
    "ACTION",
    "AUDIT",
    "CANCELLED",
    "CAPTURE",
    "CAPTURE_TEXT",
    "CHANNEL",
    "CHANNEL_KIND",
    "CHANNEL_TRIAL",
    "CHROME_TRACE",
    "COMPARISON",
    "DELIVERY",
    "DELIVERY_SUMMARY",
    "DEPTH",
    "ENROLLED",
    "GROUP",
    "HEALTH",
    "HOLD",
    "INCIDENT",
    "JOB",
    "LAG",
    "MESH",
    "MOMENT",
    "NEW_TOKEN",
    "NODE",
    "PATH",
    "RANK",
    "RANK_CAPTURE",
    "RANK_DETAIL",
    "READINESS",
    "REPORT",
    "SESSION",
    "SETTING",
    "SILENCE",
    "SPEEDSCOPE",
    "TIMELINE_POINT",
    "TOKEN",
    "TREE",
    "VERDICT",
    "Json",
    "Responses",
    "also_plain",
    "of",
    "page",
    "text",
]
