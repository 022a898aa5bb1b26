"""Asks NCCL's RAS subsystem what it knows of a job, and puts the answer into the wire's words.

RAS (reliability, availability, serviceability; NCCL 2.24 and newer) is a thread in every NCCL
process that answers on port 28028 of its own node for the whole job. It concludes nothing here:
which rank a member of a communicator is, and what its counts mean, is for the server to say.
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
"""

from __future__ import annotations

from hangwatch_agent.ras.collector import Collector

__all__ = ["Collector"]
