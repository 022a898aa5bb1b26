"""Hangwatch's REST API for Python: what the commands use, and schedulers may.

    from hangwatch_agent.client import Client

    job = Client.from_environment().check("gpt-7b", wait_s=600)

Standard library and msgspec only; nothing here is asynchronous. Not for agents, which speak `wire`.
"""

from hangwatch_agent.client.answers import (
    EXIT_CODES,
    FINE,
    HUNG,
    UNKNOWN,
    Action,
    Capture,
    Coverage,
    Culprit,
    Hold,
    Incident,
    Incidents,
    Job,
    Jobs,
    NewToken,
    Part,
    PathStep,
    Token,
    TokenRequest,
    Tokens,
    Verdict,
)
from hangwatch_agent.client.calls import DEFAULT_SERVER, Client
from hangwatch_agent.client.transport import ClientError

__all__ = [
    "DEFAULT_SERVER",
    "EXIT_CODES",
    "FINE",
    "HUNG",
    "UNKNOWN",
    "Action",
    "Capture",
    "Client",
    "ClientError",
    "Coverage",
    "Culprit",
    "Hold",
    "Incident",
    "Incidents",
    "Job",
    "Jobs",
    "NewToken",
    "Part",
    "PathStep",
    "Token",
    "TokenRequest",
    "Tokens",
    "Verdict",
]
