"""How several servers find each other. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_server.settings.detection import setting


@dataclass(frozen=True, kw_only=True)
class RedisSettings:
    """What a server needs to know to be one of several."""

    redis_url: str = field(
        default="",
        metadata=setting(
            "address of a Redis that several servers share, redis://:password@host:6379",
            "empty: this server is the only one; rediss:// for TLS, unix:///path for a socket",
            secret=True,
        ),
    )
    redis_prefix: str = field(
        default="hangwatch",
        metadata=setting(
            "first word of all channels in Redis",
            "deployments that share one Redis each need another",
        ),
    )
    drain_s: float = field(
        default=0.0,
        metadata=setting(
            "seconds that a server asked to stop still serves while /readyz says that it is not "
            "ready",
            "a proxy that asks every few seconds needs as long to send nothing more; nobody waits "
            "for a server that is alone",
        ),
    )
    move_agents_s: float = field(
        default=5.0,
        metadata=setting(
            "seconds over which a server that stops sends its agents to the others, at most",
            "a server greets some hundred agents a second; few agents are sent sooner",
        ),
    )
