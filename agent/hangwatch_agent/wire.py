"""The language that agent and server speak: tagged msgpack frames over one WebSocket per node.

This is the only module of the agent that the server may import. It holds data and its encoding, no
behaviour. Unknown fields are ignored (msgspec's default), so a field may be added with a default;
an unknown message type is refused with a reason. Every age and duration was measured on the node
with its monotonic clock and is valid at the moment the frame was sent: the receiver adds the time
since it received the frame, and never compares the wall clocks of two machines.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated, TypeVar

import msgspec

PROTOCOL = 1
GOING_AWAY = "going_away"  # of Refused: nothing is wrong, the server stops
MAX_FRAME_BYTES = 8 * 1024 * 1024  # one node's full state or one capture, with room to spare
MAX_RANKS_PER_NODE = 1024
MAX_WORLD_SIZE = 262_144
MAX_AGE_S = 10 * 365 * 86_400.0
MAX_CALLS = 1024  # open calls of a rank
MAX_PEERS = 16_384  # of a rank
MAX_GROUPS_PER_RANK = 4096
MAX_NEW_GROUPS = 8 * MAX_GROUPS_PER_RANK  # of one heartbeat
MAX_ENTRIES = 64  # newest recorder entries that travel per group
MAX_FRAMES_PER_STACK = 256
MAX_THREADS = 256
MAX_SOURCES = 32  # places of one capture part whose text travels
MAX_SOURCE_LINES = 16  # of one place
MAX_TEXT = 4096  # characters in any free text that a job can influence
MAX_RAS_MEMBERS = 65_536  # of all communicators in one answer of NCCL RAS
MAX_RAS_COMMUNICATORS = 4096
MAX_RAS_OPS = 16
MAX_ADDRESSES = 64  # of one node
MAX_NUMBER = 1e18  # of a fraction: sums of many such are still finite

# Every number of a frame is one of these two; any other is refused as the frame is read. Postgres
# takes no larger whole number, and what is not finite could not be read back once it is stored.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Finite = Annotated[float, msgspec.Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]


class WireError(Exception):
    """A frame that cannot be accepted; the text says why and goes back to the sender."""


class Depth(StrEnum):
    """How much of a rank can be seen."""

    BARE = "bare"
    RAS = "ras"
    PROBE = "probe"


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One training run as every node derives it alike."""

    key: str
    name: str
    restart: Int64 = 0  # restarts so far as the launcher counts them


class GroupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A process group, sent once per connection and rank set; heartbeats refer to it by gid."""

    gid: str
    launch: str
    name: str
    description: str
    backend: str
    ranks: str  # range text of sorted global ranks
    epoch: Int64 = 1
    timeout_s: Finite | None = None  # after which torch itself gives up; None where unknown


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One recorder entry: a collective as a rank entered it."""

    seq: Int64  # the recorder's collective_seq_id, comparable across ranks
    op: str  # without the backend's prefix: "all_reduce"
    is_retired: bool
    is_started: bool | None = None  # None where the recorder has no start events (gloo)
    input_sizes: tuple[tuple[Int64, ...], ...] = ()
    output_sizes: tuple[tuple[Int64, ...], ...] = ()
    input_dtypes: tuple[str, ...] = ()
    output_dtypes: tuple[str, ...] = ()
    record_id: Int64 = -1  # program order within this process and this recorder
    timeout_s: Finite | None = None
    site: str = ""  # "train.py:88 in step", the user's frame that made it; only with --call-sites
    root: Int64 | None = None  # global rank, for rooted collectives that the probe's wrappers saw


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Finished calls older than a group's `entries`, oldest first, each distinct one given once.

    `calls` are (seq, index into `kinds`); of a kind only seq and program order differ.
    """

    calls: tuple[tuple[Int64, Int64], ...] = ()
    kinds: tuple[Entry, ...] = ()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A wrapped call that this rank has entered and not left: P2P, monitored_barrier, rooted ops.

    `op` is "send", "recv", "recv_any", "broadcast", "reduce", "gather", "scatter" or
    "monitored_barrier". `seq` is the count of such calls on (group, direction, peer) for P2P,
    starting at 1; None for others.
    """

    op: str
    gid: str
    age_s: Finite
    peer: Int64 | None = None  # global rank
    tag: Int64 | None = None
    seq: Int64 | None = None
    root: Int64 | None = None  # global rank, for rooted collectives
    is_blocking: bool = True  # False: issued and waited for elsewhere (isend, irecv)
    site: str = ""  # as in Entry


class P2PCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many sends to, or receives from, one peer this rank has posted and finished."""

    gid: str
    peer: Int64
    is_send: bool
    posted: Int64
    done: Int64


class GroupBeat(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's counters and newest entries on one group.

    `counter` is the raw number that moves with each call: good for progress, never compared across
    ranks. `seq` is the newest collective_seq_id known to be entered, comparable; None when unknown.
    `entries` are the newest recorder entries, oldest first, as of `entries_age_s` ago; they are
    current only if the counter has not moved since (`are_entries_current`).
    """

    gid: str
    counter: Int64
    stall_s: Finite  # for how long `counter` has not moved
    seq: Int64 | None = None
    entries: tuple[Entry, ...] = ()
    entries_age_s: Finite | None = None
    are_entries_current: bool = False
    finished: Int64 | None = None  # NCCL: last completed; None on gloo, whose number is racy
    started: Int64 | None = None  # NCCL with start events only
    tail: Tail | None = (
        None  # what the recorder holds before `entries`; only while they are current
    )
    # `entries` and `tail` are left out: they are those of this process's beat before on this
    # connection. Only to a server that said `keeps_entries`.
    are_entries_kept: bool = False


class InitWait(msgspec.Struct, frozen=True, kw_only=True):
    """An init_process_group, new_group or rendezvous call that has not returned."""

    what: str
    age_s: Finite
    expected: Int64 = 0  # world size it waits for, 0 when unknown
    detail: str = ""  # init_method without secrets: "file:///shared/store"
    rank: Int64 | None = None
    stage: str = ""  # "store": it connects to the store; "group": past that, it meets its peers


class ProcessFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What /proc says of a rank's process at this moment."""

    state: str  # R S D T t Z X, or "gone"
    wchan: str = ""
    cpu_s: Finite = 0.0  # process, user + system
    main_cpu_s: Finite = 0.0  # main thread alone
    main_cpu_share: Finite | None = None  # of one core, over the last few seconds
    main_still_s: Finite | None = None  # for how long the kernel has not run the main thread at all
    main_delay_share: Finite | None = None  # of the last seconds, ready to run without a core
    io_bytes: Int64 | None = None  # read + written, None without permission
    threads: Int64 = 0
    children: tuple[ChildFacts, ...] = ()
    ended_share: Finite | None = None  # of a core, by children: counted when they have ended
    exit_code: Int64 | None = None  # known only from evidence (docs, "Why a process ended")
    exit_signal: Int64 | None = None
    exit_reason: str = ""  # "uncaught RuntimeError", "oom_kill", …; "" = cause unknown
    is_unresponsive: bool = False  # the probe is silent and its socket does not answer
    is_gil_held: bool = False  # the probe is silent and its socket answers
    is_being_read: bool = False  # a capture of this agent stops it for a moment, with native frames


class ChildFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A descendant of a rank: loader worker, compiler, launcher helper."""

    pid: Int64
    name: str
    role: str  # "loader", "compile", "checkpoint", "helper", "other"
    state: str
    wchan: str = ""
    cpu_share: Finite | None = None  # with what its own children took, once they have ended
    io_rate: Finite | None = None  # bytes a second, read + written; None if not known
    parent: Int64 = 0  # pid; 0 from agents that do not say it


class GpuFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU that a process uses, as NVML says; None where the driver does not say it."""

    index: Int64
    uuid: str = ""
    name: str = ""
    utilisation: Finite | None = None  # percent of the last sample period in which a kernel ran
    xid: tuple[Int64, ...] = ()  # of the last 15 minutes, oldest first
    power_w: Finite | None = None
    power_limit_w: Finite | None = None
    memory_used_bytes: Int64 | None = None
    memory_total_bytes: Int64 | None = None
    temperature_c: Finite | None = None
    ecc_errors: Int64 | None = None  # uncorrected, since the driver was loaded
    throttle: tuple[str, ...] = ()  # why its clocks are held down: "hw_thermal_slowdown"


class RankBeat(msgspec.Struct, frozen=True, kw_only=True):
    """All an agent says of one rank at one moment."""

    launch: str
    rank: Int64
    local_rank: Int64
    world_size: Int64
    pid: Int64
    start_ticks: Int64  # /proc/PID/stat field 22: with pid, the identity of the process on its node
    process: ProcessFacts
    depth: Depth = Depth.BARE
    is_rank_certain: bool = False  # True once torch itself said the rank (after init)
    restart: Int64 = 0
    script: str = ""
    beat_age_s: Finite | None = None  # since the probe last wrote; None without probe
    step: Int64 | None = None
    phase: str = ""  # announced by the user
    phase_s: Finite = 0.0
    phase_limit_s: Finite | None = None
    is_initialised: bool = False
    is_destroyed: bool = False  # past destroy_process_group or in interpreter shutdown
    groups_begun: Int64 | None = None  # creations of groups begun, the default group's included
    groups: tuple[GroupBeat, ...] = ()
    calls: tuple[Call, ...] = ()
    p2p: tuple[P2PCount, ...] = ()
    waits: tuple[InitWait, ...] = ()
    gpu: GpuFacts | None = None
    lacks: tuple[str, ...] = ()  # what is missing for more depth, in words
    inner_pid: Int64 | None = None  # in its own pid namespace, where that is another number


class RasState(StrEnum):
    """What NCCL RAS says of a member of a communicator."""

    INIT = "init"
    RUNNING = "running"
    FINALIZE = "finalize"
    ABORT = "abort"
    LEFT = "left"  # its process answers and knows the communicator no more
    UNRESPONSIVE = "unresponsive"  # its process does not answer over the RAS network
    DEAD = "dead"  # so for a minute: RAS has given it up


class RasMember(msgspec.Struct, frozen=True, array_like=True):
    """One member of a communicator. Sent as an array: a job has very many of them."""

    rank: Int64  # its place in the communicator, which is no global rank
    host: Int64  # index into the report's hosts, -1 unknown
    pid: Int64  # in its own pid namespace, -1 unknown
    gpu: Int64  # as NVML numbers it, -1 unknown
    state: RasState
    counts: tuple[Int64, ...] = ()  # launched so far, per op of the communicator; () unknown
    error: str = ""  # NCCL's asynchronous or initialisation error, in words


class RasCommunicator(msgspec.Struct, frozen=True, kw_only=True):
    """A communicator of NCCL as all of its members that could be reached describe it."""

    hash: str
    size: Int64
    ops: tuple[str, ...] = ()  # what `counts` count: "all_reduce", …
    members: tuple[RasMember, ...] = ()


class RasReport(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of NCCL RAS, which speaks for the whole job."""

    launch: str
    number: Int64  # rises with each answer that this agent got for the launch
    age_s: Finite  # since NCCL answered
    version: str = ""  # NCCL's
    is_text: bool = False  # NCCL before 2.28.7: only what differs between members is told
    hosts: tuple[str, ...] = ()  # addresses
    communicators: tuple[RasCommunicator, ...] = ()
    timeouts: Int64 = 0  # legs of the RAS network that did not answer in time
    omitted: Int64 = 0  # members beyond the limits


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """First frame of a connection."""

    protocol: Int64
    node: str
    version: str
    boot_id: str = ""
    stacks: str = ""  # "" = py-spy works; else the reason
    stacks_remedy: str = ""
    cpu_count: Int64 = 0
    addresses: tuple[str, ...] = ()  # of its network interfaces: NCCL RAS names hosts by these
    # The node's clock as the hello was sent, in seconds since the epoch. Only to tell people that
    # it goes wrong: no age is ever made of it.
    wall_s: Finite | None = None


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True, tag="heartbeat"):
    """What a node says of its ranks; `is_full` after each (re)connect, when groups travel again.

    Each heartbeat lists every live or just ended rank of the node: a rank that is absent is no
    longer there.
    """

    number: Int64  # rises by one; a gap counts frames that were dropped
    launches: tuple[Launch, ...]
    ranks: tuple[RankBeat, ...]
    groups: tuple[GroupInfo, ...] = ()
    is_full: bool = False
    dropped: Int64 = 0  # heartbeats dropped since the agent started
    ras: tuple[RasReport, ...] = ()  # each answer travels once per connection


class CaptureKind(StrEnum):
    STACKS = "stacks"
    RECORDER = "recorder"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    launch: str
    rank: Int64


class TakeCapture(msgspec.Struct, frozen=True, kw_only=True, tag="take_capture"):
    """Server to agent: take stacks or recorder entries of these ranks, and nothing else."""

    capture: str
    targets: tuple[Target, ...]
    kinds: tuple[CaptureKind, ...] = (CaptureKind.STACKS,)
    native: bool = False
    deadline_s: Finite = 15.0


class SetInterval(msgspec.Struct, frozen=True, kw_only=True, tag="set_interval"):
    interval_s: Finite


class AskRas(msgspec.Struct, frozen=True, kw_only=True, tag="ask_ras"):
    """Server to agent: ask NCCL RAS for these launches, in place of the node that holds rank 0."""

    launches: tuple[str, ...]
    for_s: Finite = 60.0


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One stack frame."""

    name: str
    file: str
    line: Int64
    is_native: bool = False


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """One thread's stack, frames innermost first."""

    pid: Int64
    thread_id: Int64  # OS thread id; equal to pid for the main thread
    name: str
    frames: tuple[Frame, ...]
    is_active: bool = False
    owns_gil: bool = False


class ProcessStacks(msgspec.Struct, frozen=True, kw_only=True):
    """The threads of a rank's process (role "main") or of one of its children."""

    pid: Int64
    role: str  # "main", "loader", "compile", "checkpoint", "other"
    threads: tuple[Thread, ...]
    reason: str = ""  # why there are no threads
    remedy: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says around a line that a stack stands at, when the stack was taken.

    A file that was edited after the process had loaded it says something else than what runs.
    """

    file: str
    line: Int64
    first: Int64  # number of the first of `lines`
    lines: tuple[str, ...]


class GroupEntries(msgspec.Struct, frozen=True, kw_only=True):
    gid: str
    entries: tuple[Entry, ...]


class CapturePart(msgspec.Struct, frozen=True, kw_only=True, tag="capture_part"):
    """Agent to server: one rank's share of a capture. Kept by the agent until acknowledged."""

    capture: str
    launch: str
    rank: Int64
    pid: Int64
    age_s: Finite  # since it was taken
    stacks: tuple[ProcessStacks, ...] = ()
    entries: tuple[GroupEntries, ...] = ()
    process: ProcessFacts | None = None
    reason: str = ""  # why stacks or entries are missing
    remedy: str = ""
    sources: tuple[Source, ...] = ()  # of the user's own code; () from agents that do not read it


class Samples(msgspec.Struct, frozen=True, kw_only=True, tag="samples"):
    """Agent to server: stacks it took by itself of ranks without a probe.

    Each part's `capture` is an id of the agent's own making. They are neither stored nor
    acknowledged: the next ones say more.
    """

    parts: tuple[CapturePart, ...]


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag="welcome"):
    """Server to agent, after an accepted hello."""

    protocol: Int64
    version: str
    interval_s: Finite = 1.0
    takes_samples: bool = False  # an older server refuses frames that it does not know
    keeps_entries: bool = False  # it fills in entries that a beat leaves out (GroupBeat)


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Either side's last frame before it closes the connection."""

    # "unauthorised", "wrong_node", "duplicate_node", "malformed", "too_large", "protocol", or
    # GOING_AWAY: come back then, at the same address, where another server may answer.
    code: str
    reason: str
    retry_after_s: Finite | None = None  # None: retrying unchanged will not help


class Stored(msgspec.Struct, frozen=True, kw_only=True, tag="stored"):
    """Server to agent: this capture part is durable and may be forgotten."""

    capture: str
    launch: str
    rank: Int64


T = TypeVar("T")

AgentFrame = Hello | Heartbeat | CapturePart | Samples
ServerFrame = Welcome | Refused | TakeCapture | SetInterval | AskRas | Stored

_encoder = msgspec.msgpack.Encoder()
# msgspec's types cannot express a decoder of a union.
_agent_decoder: msgspec.msgpack.Decoder[AgentFrame] = msgspec.msgpack.Decoder(AgentFrame)
_server_decoder: msgspec.msgpack.Decoder[ServerFrame] = msgspec.msgpack.Decoder(ServerFrame)


def encode(frame: AgentFrame | ServerFrame) -> bytes:
    return _encoder.encode(frame)


def decode_from_agent(data: bytes) -> AgentFrame:
    """Raise WireError for anything that is not a well-formed agent frame within the limits."""
    return _decode(_agent_decoder, data)


def decode_from_server(data: bytes) -> ServerFrame:
    """Raise WireError for anything that is not a well-formed server frame within the limits."""
    return _decode(_server_decoder, data)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    if len(data) > MAX_FRAME_BYTES:
        raise WireError(f"frame of {len(data)} bytes is over the limit of {MAX_FRAME_BYTES}")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"frame cannot be read: {error}") from error


def gid_of(launch: str, name: str, ranks: str, epoch: int) -> str:
    """12 hex digits for (launch, name, sorted global ranks as range text, epoch)."""
    text = "\0".join((launch, name, ranks, str(epoch)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
