"""What is known of a job at one moment: the input of `detect` and `diagnose`."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from hangwatch_agent import wire
from hangwatch_server.model.words import Activity, Link


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """What the captures of one rank's process say so far; made by the `stacks` room."""

    pid: int
    age_s: float  # of the newest capture
    where: str  # "train.py:88 in __getitem__", the innermost frame of the user's own code
    leaf: str  # the innermost frame of all: "selectors.py:415 in select"
    activity: Activity
    op: str = ""  # the collective's function name when activity is COLLECTIVE
    detail: str = ""  # one clause for people: "waits for a batch from its loader workers"
    user_path: tuple[wire.Frame, ...] = ()  # frames of the user's own code, outermost first
    is_in_backward: bool = False
    is_in_forward: bool = False  # of DistributedDataParallel
    is_in_join: bool = False  # inside torch.distributed.algorithms.join
    same_leaf_captures: int = 1  # newest captures in a row with the same stack
    same_leaf_s: float = 0.0  # time between the first and the last of them
    capture: str = ""  # id of the newest capture
    is_kept: bool = True  # False: the agent's own look, stored nowhere
    lock_holder: str = ""  # for LOCK: "thread 'writer' at train.py:40 in flush"
    gil_holder: str = ""  # "its main thread": it keeps the interpreter lock and does not run
    waits_on: str = ""  # "child" or "thread" where the main thread waits for the work of one
    is_served: bool = False  # and that child or thread was running when it was looked at
    signature: str = ""  # equal for equal stacks, see stacks.signature
    is_opaque: bool = False  # a lock or an asynchronous call's wait(): the stack cannot tell which


# What the members of a group must make alike in a call: its op, input sizes and input dtypes.
Content = tuple[str, tuple[tuple[int, ...], ...], tuple[str, ...]]


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a rank stands on one of its groups, by one heartbeat alone; see `places`.

    A flat struct that the collector need not follow: a large job has a hundred thousand of them.
    """

    rank: int
    gid: str
    entered: int | None  # None: something is odd here, so the heartbeat must be read with care
    completed: int  # newest collective that is known to be finished, -1 for none
    front: wire.Entry | None
    waits_in: int  # the front's number, -1 without one
    queued_as: int  # its number in the order of the program where NCCL has queued it, else -1
    stall_s: float  # at the moment of the heartbeat
    content: Content | None  # the front's; mostly one object for all ranks that make the same call
    group: wire.GroupBeat  # its own words
    may_wait: bool  # whether it may have entered a call and not finished it


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """One rank at the moment of a snapshot. Ages inside `beat` are `age_s` older by now."""

    rank: int
    node: str  # "" while no agent has reported it
    link: Link
    age_s: float  # since its newest heartbeat was received
    beat: wire.RankBeat | None  # None: never reported, or no more by an agent that is heard
    stack: StackFacts | None = None
    places: tuple[Place, ...] | None = None  # by `beat`; None: whoever asks works them out


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    gid: str
    name: str
    description: str
    backend: str
    ranks: tuple[int, ...]  # sorted global ranks
    epoch: int = 1
    timeout_s: float | None = None  # after which torch itself gives up; None where unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class RasMember:
    """What NCCL RAS says of one rank as a member of one communicator."""

    rank: int  # global
    state: wire.RasState
    counts: tuple[int, ...] = ()  # launched so far, per op of the communicator; () unknown
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RasView:
    """One communicator by the newest answer of NCCL RAS, its members found among the ranks."""

    gid: str  # of the group with these members, or of a group of its own
    hash: str
    size: int
    ops: tuple[str, ...]  # what `counts` count
    members: tuple[RasMember, ...]  # by rank; those that no process of the job could be found for
    unmapped: int  # are only counted
    version: str  # NCCL's
    age_s: float  # since NCCL answered
    unchanged_s: float  # since the first of the answers in a row that say the same
    same_answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything known of one job attempt at one moment; the input of `detect` and `diagnose`."""

    job: str
    attempt: int
    world_size: int
    # Ascending, one for each of 0..world_size-1; of a job that says it is far larger than what is
    # seen of it, all that were seen and only the first of the others. The rest is unknown.
    ranks: dict[int, RankView]
    groups: dict[str, GroupView]
    taken_s: float  # the server's monotonic clock
    age_s: float = 0.0  # since the first rank of this attempt was seen
    ras: tuple[RasView, ...] = ()
