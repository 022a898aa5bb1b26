"""Settings of the actions hook: whether a command is run on a confirmed hang, and how seldom.

Standard library only, as all settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_server.settings.detection import setting


@dataclass(frozen=True, kw_only=True)
class ActionSettings:
    """When the server may run a command of the operator's, and which."""

    action_command: str = field(
        default="",
        metadata=setting(
            "command to run on a confirmed hang, as words with quotes where needed; no shell runs",
            "empty: a verdict is advice, and nothing is done to any job",
        ),
    )
    action_min_confidence: float = field(
        default=0.9,
        metadata=setting(
            "least confidence of a verdict for the command to run",
            "what is less certain is for people to judge",
        ),
    )
    action_settle_s: float = field(
        default=10.0,
        metadata=setting(
            "seconds that a confirmed incident must stand before the command runs",
            "a stall that ends by itself is spared, and job scripts that wait 30 s come after it",
        ),
    )
    action_per_hour: int = field(
        default=4,
        metadata=setting(
            "most commands in an hour, over all jobs",
            "when a network fails, every job hangs: that is no reason to restart them all",
        ),
    )
    action_per_job_per_hour: int = field(
        default=1,
        metadata=setting(
            "most commands in an hour for one job",
            "a job that hangs again within the hour needs a person",
        ),
    )
    action_timeout_s: float = field(
        default=60.0,
        metadata=setting(
            "seconds until a command is ended",
            "scontrol and kubectl answer within seconds, or not at all",
        ),
    )
    action_dry_run: bool = field(
        default=False,
        metadata=setting(
            "write down what would be run, and run nothing",
            "for the first weeks: the incident's history says when it would have acted",
        ),
    )
