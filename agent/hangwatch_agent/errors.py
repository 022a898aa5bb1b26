"""The agent's errors. Each text says what failed, the likely cause, and the next command."""

from __future__ import annotations


class AgentError(Exception):
    """Base of everything the agent raises on purpose; `str()` is fit to show to a user."""


class SettingsError(AgentError):
    """A setting that is unknown, or whose value cannot be read."""


class RunDirError(AgentError):
    """The run dir is in use by another agent, unreachable, or not safe to use."""


class SocketError(AgentError):
    """A rank's worker socket did not answer, or is not what it claims to be."""


class SocketAbsentError(SocketError):
    """There is no worker socket where the rank's must be: its file has been removed."""


class RasError(AgentError):
    """NCCL RAS did not answer, or not with something that can be read."""


class DumpError(AgentError):
    """A recorder dump that a job wrote cannot be read, or is not plain data within the limits."""


class EnrolmentError(AgentError):
    """The node could not be enrolled just now, or its token not be kept."""


class RefusedError(AgentError):
    """The server does not accept this agent; `retry_s` says when asking again makes sense."""

    def __init__(self, text: str, retry_s: float, code: str = "") -> None:
        super().__init__(text)
        self.retry_s = retry_s
        self.code = code  # of wire.Refused
