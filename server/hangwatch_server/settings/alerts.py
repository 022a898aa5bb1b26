"""When people are told, how stubbornly, and when the monitor says that it is blind: as settings.

Apart from the other settings because they belong to one room. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_server.settings.detection import setting


@dataclass(frozen=True, kw_only=True)
class AlertSettings:
    """Alerts, and the watch over the watcher."""

    alert_settle_s: float = field(
        default=10.0,
        metadata=setting(
            "seconds that a hang must stand after its confirmation until people are told",
            "a stall that ends by itself just then wakes nobody",
        ),
    )
    alert_tick_s: float = field(
        default=1.0,
        metadata=setting(
            "seconds between two looks at what is to be told",
            "three small statements each; a message is late by half a second on average",
        ),
    )
    alert_retry_s: float = field(
        default=2.0,
        metadata=setting(
            "most seconds until a message that failed is tried again; doubles each time, to 1 h",
            "a receiver that restarts is back in seconds, and an alert that is late is none",
        ),
    )
    alert_claim_s: float = field(
        default=30.0,
        metadata=setting(
            "seconds that a server has for one try, until another server may take the message over",
            "longer than slow receivers take; a server killed while sending costs no more than it",
        ),
    )
    blind_after_s: float = field(
        default=120.0,
        metadata=setting(
            "seconds that Hangwatch must see too little of running jobs until it says so",
            "agents that restart or reconnect are back sooner",
        ),
    )
    blind_share: float = field(
        default=0.5,
        metadata=setting(
            "share of a running job's ranks that must report",
            "with fewer, the ranks that hold others up are more likely out of sight than in it",
        ),
    )
    blind_forget_s: float = field(
        default=1800.0,
        metadata=setting(
            "seconds without any word of a job until Hangwatch waits for it no longer",
            "nodes that a scheduler took away do not come back; a reboot takes less",
        ),
    )
    heartbeat_url: str = field(
        default="",
        metadata=setting(
            "address that is sent a POST for as long as Hangwatch can judge jobs and send alerts",
            "empty: none; a dead man's switch outside, such as healthchecks, notices the silence",
            secret=True,
        ),
    )
    heartbeat_interval_s: float = field(
        default=60.0,
        metadata=setting(
            "seconds between two of them",
            "the usual period of such services, which allow for one that is late",
        ),
    )
