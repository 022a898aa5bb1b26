"""The fixed words: states of jobs, kinds of waits, conditions of culprits, and their like."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What a job does as a whole."""

    STARTING = "starting"
    HEALTHY = "healthy"
    EXPECTED_WAIT = "expected_wait"
    SLOW = "slow"
    SUSPECTED = "suspected"
    HUNG = "hung"
    UNKNOWN = "unknown"
    FINISHED = "finished"
    FAILED = "failed"


class Kind(StrEnum):
    """What the communication looks like."""

    MISSING_RANKS = "missing_ranks"
    MISMATCH = "mismatch"
    DEADLOCK = "deadlock"
    UNMATCHED_P2P = "unmatched_p2p"
    STALLED_COLLECTIVE = "stalled_collective"
    INCOMPLETE_RENDEZVOUS = "incomplete_rendezvous"
    NO_PROGRESS = "no_progress"
    NONE = "none"


class Condition(StrEnum):
    """What a culprit is doing."""

    EXITED = "exited"
    KILLED = "killed"
    NODE_LOST = "node_lost"
    STOPPED = "stopped"
    UNINTERRUPTIBLE = "uninterruptible"
    GIL_HELD = "gil_held"
    IN_DATALOADER = "in_dataloader"
    IN_CHECKPOINT = "in_checkpoint"
    IN_COMPILE = "in_compile"
    IN_LOCK = "in_lock"
    IN_USER_CODE = "in_user_code"
    IN_COLLECTIVE = "in_collective"
    GPU_BUSY = "gpu_busy"
    FINISHED = "finished"
    UNRESPONSIVE = "unresponsive"
    UNKNOWN = "unknown"


class Link(StrEnum):
    """Whether the agent of a rank's node is heard."""

    LIVE = "live"
    LATE = "late"  # over 5 s silent
    LOST = "lost"  # over 20 s silent, or its connection closed and did not come back


class Activity(StrEnum):
    """What a main thread's stack shows."""

    COLLECTIVE = "collective"  # inside a blocking call of torch.distributed or a wait on its work
    DATALOADER = "dataloader"
    CHECKPOINT = "checkpoint"
    COMPILE = "compile"
    MODEL_LOADING = "model_loading"
    EVALUATION = "evaluation"
    LOCK = "lock"
    GPU = "gpu"  # inside a wait for the GPU: synchronize, .item()
    RENDEZVOUS = "rendezvous"  # inside init_process_group, new_group or a store call
    SHUTDOWN = "shutdown"  # destroy_process_group, atexit, threading._shutdown
    USER_CODE = "user_code"
    UNKNOWN = "unknown"


class IncidentState(StrEnum):
    OPEN = "open"  # suspected: hidden, no alert
    CONFIRMED = "confirmed"
    RESOLVED = "resolved"  # progress came back
    ENDED = "ended"  # job finished, failed or restarted
    PRUNED = "pruned"  # a suspicion that progress cleared


JOB_FAILED = "job failed"  # the reason why an incident ended that no progress and no restart ended
ACTIVE_INCIDENTS = (IncidentState.OPEN, IncidentState.CONFIRMED)
# A suspicion is no incident for people yet: these are what lists show unless asked for others.
SHOWN_INCIDENTS = (IncidentState.CONFIRMED, IncidentState.RESOLVED, IncidentState.ENDED)


class CaptureState(StrEnum):
    TAKING = "taking"
    COMPLETE = "complete"
    PARTIAL = "partial"  # some parts did not come before the deadline
