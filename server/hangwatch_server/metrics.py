"""Every metric of the server, with Prometheus name, unit and a sentence of help. None per rank."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

import hangwatch_server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
registry = CollectorRegistry(auto_describe=True)
ProcessCollector(registry=registry)  # CPU, memory and open files under their usual names

frames_received = Counter(
    "hangwatch_frames_received_total",
    "Frames accepted from agents, by type.",
    ["type"],
    registry=registry,
)
frames_refused = Counter(
    "hangwatch_frames_refused_total",
    "Frames or connections of agents that were refused, by code.",
    ["code"],
    registry=registry,
)
credentials_refused = Counter(
    "hangwatch_credentials_refused_total",
    "Requests and connections with a token that is not good, and failed logins.",
    registry=registry,
)
connections_refused = Counter(
    "hangwatch_connections_refused_total",
    "Connections closed for a request too large or too slow, by status, or an unread answer.",
    ["status"],
    registry=registry,
)
agents_connected = Gauge(
    "hangwatch_agents_connected", "Agents with a live connection.", registry=registry
)
jobs_watched = Gauge("hangwatch_jobs_watched", "Jobs that the board holds.", registry=registry)
jobs = Gauge("hangwatch_jobs", "Jobs that the board holds, by state.", ["state"], registry=registry)
nodes = Gauge(
    "hangwatch_nodes",
    "Nodes by how well their agent is heard: live, late or lost.",
    ["link"],
    registry=registry,
)
ranks_expected = Gauge(
    "hangwatch_ranks_expected", "Ranks that the watched jobs have in all.", registry=registry
)
ranks_reporting = Gauge(
    "hangwatch_ranks_reporting", "Ranks of the watched jobs that are heard.", registry=registry
)
build = Gauge(
    "hangwatch_build_info", "Always 1; its label is the version.", ["version"], registry=registry
)
build.labels(hangwatch_server.__version__).set(1)
bus_events_dropped = Counter(
    "hangwatch_bus_events_dropped_total",
    "Events that a slow subscriber lost.",
    registry=registry,
)
frames_relayed = Counter(
    "hangwatch_frames_relayed_total",
    "Heartbeats that came in through another server.",
    registry=registry,
)
relayed_bytes = Counter(
    "hangwatch_relayed_bytes_total",
    "Bytes told to other servers, as packed for Redis.",
    registry=registry,
)
relay_failures = Counter(
    "hangwatch_relay_failures_total",
    "Failed attempts to tell other servers over Redis.",
    registry=registry,
)
wholes_wanted = Counter(
    "hangwatch_wholes_wanted_total",
    "Times that another server was asked for all it knows: it was new, or something was missed.",
    registry=registry,
)
letters_refused = Counter(
    "hangwatch_letters_refused_total",
    "Messages of other servers that could not be read or taken in.",
    registry=registry,
)
tick_seconds = Histogram(
    "hangwatch_tick_seconds",
    "Time that one look at all jobs took.",
    buckets=(0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
    registry=registry,
)
watch_failures = Counter(
    "hangwatch_watch_failures_total",
    "Looks at a job that failed with an unexpected error.",
    registry=registry,
)
task_failures = Counter(
    "hangwatch_task_failures_total",
    "Background tasks of the server that ended unexpectedly and were begun anew, by task.",
    ["task"],
    registry=registry,
)
database_failures = Counter(
    "hangwatch_database_failures_total",
    "Writes that the database did not take and that will be tried again.",
    registry=registry,
)
verdicts_changed = Counter(
    "hangwatch_verdicts_changed_total",
    "Verdicts whose state, kind, culprits or incident changed, by new state.",
    ["state"],
    registry=registry,
)
captures_requested = Counter(
    "hangwatch_captures_requested_total", "Captures requested from agents.", registry=registry
)
capture_parts_stored = Counter(
    "hangwatch_capture_parts_stored_total", "Parts of captures made durable.", registry=registry
)

actions = Counter(
    "hangwatch_actions_total",
    "Commands of the actions hook as they began and ended, by state.",
    ["state"],
    registry=registry,
)
http_requests = Counter(
    "hangwatch_http_requests_total",
    "HTTP requests by status of the answer; 0 is one that got none.",
    ["status"],
    registry=registry,
)
calls_refused = Counter(
    "hangwatch_calls_refused_total",
    "Calls that found all places taken, by what they would have held open.",
    ["what"],
    registry=registry,
)

alerts_sent = Counter(
    "hangwatch_alerts_sent_total",
    "Tries to send a message, by kind of channel and outcome: sent, tried (again later), failed "
    "(given up) or claim_lost (another server sends it).",
    ["kind", "outcome"],
    registry=registry,
)
alerts_pending = Gauge(
    "hangwatch_alerts_pending", "Messages in the outbox that wait to be sent.", registry=registry
)
alerts_oldest_pending_seconds = Gauge(
    "hangwatch_alerts_oldest_pending_seconds",
    "Age of the oldest message that waits to be sent; 0 without one.",
    registry=registry,
)
is_blind = Gauge(
    "hangwatch_blind",
    "1 while the monitor sees too little of running jobs to judge them.",
    registry=registry,
)


def render() -> bytes:
    """All metrics in the Prometheus text format."""
    return generate_latest(registry)
