"""How many connections and calls that stay open there may be. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field

from hangwatch_server.settings.detection import setting


@dataclass(frozen=True, kw_only=True)
class CallLimits:
    """For each caller, and for all together; beyond them a call is answered with 429.

    Of connections nobody knows yet whose they are: those are counted by address, and answered 503.
    """

    connections_each: int = field(
        default=5_000,
        metadata=setting(
            "connections that one address may have open, but for agents and trusted proxies",
            "more than all waiting calls and streams together; half of the open files at most",
        ),
    )

    streams_each: int = field(
        default=200,
        metadata=setting(
            "event streams that one token may have open; each open page is one",
            "a team that shares a token, with some tabs each",
        ),
    )
    streams_most: int = field(
        default=1_000,
        metadata=setting(
            "event streams that may be open in all",
            "each page is drawn anew about once a second while its job changes",
        ),
    )
    waiting_each: int = field(
        default=2_000,
        metadata=setting(
            "calls of one token that may wait at a time: for a verdict, a capture, a hold",
            "a scheduler's one token waits for all of its jobs",
        ),
    )
    waiting_most: int = field(
        default=4_000,
        metadata=setting(
            "calls that may wait in all",
            "each takes about 50 kB and a connection; see bench/long_poll.py",
        ),
    )
    bundles_each: int = field(
        default=2,
        metadata=setting(
            "bundles of incidents that one token may fetch at a time",
            "a person reads one after the other",
        ),
    )
    bundles_most: int = field(
        default=4,
        metadata=setting(
            "bundles that may be fetched in all",
            "each packs megabytes of stacks, on the core that watches the jobs",
        ),
    )
