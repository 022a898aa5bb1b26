"""The latest state of every rank, and nothing older: what agents said, put into jobs and attempts.

No history, no decisions, no I/O. Time is passed in, always the server's monotonic clock.
"""

from hangwatch_server.board.base import Board, JobMeta, NodeState, ProcessId
from hangwatch_server.board.memory import MemoryBoard
from hangwatch_server.board.relayed import NodeWhole, RelayedBoard

__all__ = ["Board", "JobMeta", "MemoryBoard", "NodeState", "NodeWhole", "ProcessId", "RelayedBoard"]
