"""Every setting of the server, with what it does and why it has its default. Nothing is read here.

Standard library only: the command line loads this dataclass before the server's dependencies. The
limits of detection have the names of `detect.DetectSettings`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from hangwatch_server.settings.access import AccessSettings
from hangwatch_server.settings.actions import ActionSettings
from hangwatch_server.settings.alerts import AlertSettings
from hangwatch_server.settings.calls import CallLimits
from hangwatch_server.settings.detection import DetectionLimits, setting
from hangwatch_server.settings.outgoing import OutgoingSettings
from hangwatch_server.settings.redis import RedisSettings


def default_data_dir() -> Path:
    """`/var/lib/hangwatch` for root, else in the user's data folder."""
    if os.geteuid() == 0:
        return Path("/var/lib/hangwatch")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "hangwatch"


@dataclass(frozen=True, kw_only=True)
class ServerSettings(
    AccessSettings,
    CallLimits,
    DetectionLimits,
    ActionSettings,
    AlertSettings,
    OutgoingSettings,
    RedisSettings,
):
    """What one server process needs to know."""

    host: str = field(
        default="127.0.0.1",
        metadata=setting("address to listen on", "nobody else reaches it until you say so"),
    )
    port: int = field(
        default=8042,
        metadata=setting("port to listen on", "unassigned, and free on most machines"),
    )
    data_dir: Path = field(
        default_factory=default_data_dir,
        metadata=setting(
            "folder of the embedded Postgres", "where a service of this user keeps its state"
        ),
    )
    database_url: str = field(
        default="",
        metadata=setting(
            "address of a Postgres, postgresql://user:password@host/name",
            "empty: the server runs a private Postgres in its data folder",
            secret=True,
        ),
    )
    bootstrap_token: str = field(
        default="",
        metadata=setting(
            "text of the first admin token",
            "empty: the first start makes one and prints it once",
            secret=True,
        ),
    )
    allow_anonymous: bool = field(
        default=False,
        metadata=setting(
            "let anybody read who reaches the server over loopback",
            "for a demo on your own machine; refused unless host is a loopback address",
        ),
    )
    public_url: str = field(
        default="",
        metadata=setting(
            "address under which people reach this server", "empty: made from host and port"
        ),
    )
    log_level: str = field(
        default="info",
        metadata=setting("debug, info, warning or error", "info is written for operators"),
    )
    log_format: str = field(
        default="text",
        metadata=setting(
            "text or json: how a line of the log is written", "text is read by people as it is"
        ),
    )
    interval_s: float = field(
        default=1.0,
        metadata=setting(
            "seconds between heartbeats that agents are told", "the probe writes once a second"
        ),
    )
    tick_s: float = field(
        default=0.5,
        metadata=setting(
            "seconds between two looks at all jobs", "half a heartbeat, so that none is missed"
        ),
    )
    agent_late_s: float = field(
        default=5.0,
        metadata=setting(
            "silence after which an agent is late",
            "five heartbeats: more than a short network fault",
        ),
    )
    agent_lost_s: float = field(
        default=20.0,
        metadata=setting(
            "silence after which a node is lost", "longer than an agent's restart and reconnect"
        ),
    )
    lease_ttl_s: float = field(
        default=6.0,
        metadata=setting(
            "seconds until another server may take over a job's detection",
            "well under the 10 s of the first limit, three times the renewal",
        ),
    )
    forget_after_s: float = field(
        default=600.0,
        metadata=setting(
            "seconds until a job without a living rank leaves memory",
            "long enough to look at a job that just ended; the database keeps it",
        ),
    )
    abandon_after_s: float = field(
        default=86_400.0,
        metadata=setting(
            "seconds without any word of a job until its incident is ended",
            "a day: nodes that are still away then do not come back to this run",
        ),
    )
    retention_days: float = field(
        default=30.0,
        metadata=setting(
            "days that jobs, incidents and captures are kept",
            "a month covers a review of incidents",
        ),
    )
    suspicion_retention_days: float = field(
        default=1.0,
        metadata=setting(
            "days that suspicions which came to nothing are kept",
            "useful only to somebody who tunes the limits now",
        ),
    )
    capture_deadline_s: float = field(
        default=15.0,
        metadata=setting(
            "seconds that an agent has for a capture", "a py-spy dump takes 0.02 to 10 s"
        ),
    )
