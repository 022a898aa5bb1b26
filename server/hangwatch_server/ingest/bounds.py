"""Limits on what a well-formed frame may say: counts, ranks, lengths, durations.

Whatever passes here cannot make the board or a diagnosis grow beyond its bounds. The form of frames
is `wire`'s matter, and so is that each number is finite and fits into 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable

from hangwatch_agent import wire
from hangwatch_agent.wire import WireError
from hangwatch_server import ranges
from hangwatch_server.errors import BadRangeError

MAX_LAUNCHES = wire.MAX_RANKS_PER_NODE  # every rank may be of a launch of its own
MAX_CHILDREN = 1024
MAX_NAME = 255
MAX_XIDS = 64


MAX_WALL_S = 1e10


def check_hello(hello: wire.Hello) -> None:
    """Raise WireError for a hello that cannot be accepted."""
    if not 0 < len(hello.node) <= MAX_NAME or not hello.node.isprintable():
        raise WireError(f"a node's name has 1 to {MAX_NAME} printable characters")
    _texts((hello.version, hello.boot_id, hello.stacks, hello.stacks_remedy))
    _count(len(hello.addresses), wire.MAX_ADDRESSES, "addresses of a node")
    _texts(hello.addresses)
    if hello.wall_s is not None and not 0 <= hello.wall_s <= MAX_WALL_S:
        raise WireError(
            "a node's clock shows seconds since 1970, at most those until the year 2286"
        )


def check_heartbeat(heartbeat: wire.Heartbeat) -> None:
    """Raise WireError for a heartbeat that is over a limit or contradicts itself."""
    _count(len(heartbeat.ranks), wire.MAX_RANKS_PER_NODE, "ranks")
    _count(len(heartbeat.launches), MAX_LAUNCHES, "launches")
    _count(len(heartbeat.groups), wire.MAX_NEW_GROUPS, "groups")
    for launch in heartbeat.launches:
        _texts((launch.key, launch.name))
        if not launch.key or not 0 <= launch.restart <= 1_000_000:
            raise WireError("a launch has a key and a restart count from 0 to 1,000,000")
    for info in heartbeat.groups:
        _check_group(info)
    _count(len(heartbeat.ras), MAX_LAUNCHES, "answers of NCCL RAS")
    for report in heartbeat.ras:
        _check_ras(report)
    seen: set[tuple[str, int, int, int]] = set()
    for beat in heartbeat.ranks:
        _check_rank(beat)
        key = (beat.launch, beat.rank, beat.pid, beat.start_ticks)
        if key in seen:
            raise WireError(f"rank {beat.rank} of one process is listed twice")
        seen.add(key)


def check_part(part: wire.CapturePart) -> None:
    """Raise WireError for a capture part that is over a limit."""
    _texts((part.capture, part.launch, part.reason, part.remedy))
    _numbers((part.age_s,))
    if not 0 <= part.rank < wire.MAX_WORLD_SIZE:
        raise WireError(f"rank {part.rank} is not between 0 and {wire.MAX_WORLD_SIZE - 1}")
    _count(len(part.stacks), MAX_CHILDREN, "processes in a capture")
    for process in part.stacks:
        _count(len(process.threads), wire.MAX_THREADS, "threads")
        for thread in process.threads:
            _count(len(thread.frames), wire.MAX_FRAMES_PER_STACK, "frames of a stack")
    _count(len(part.entries), wire.MAX_GROUPS_PER_RANK, "groups in a capture")
    for group in part.entries:
        _count(len(group.entries), wire.MAX_ENTRIES, "entries of a group")
    _count(len(part.sources), wire.MAX_SOURCES, "source places in a capture")
    for source in part.sources:
        _count(len(source.lines), wire.MAX_SOURCE_LINES, "source lines of a place")
        _texts((source.file, *source.lines))
    if part.process is not None:
        _check_process(part.process)


def check_samples(frame: wire.Samples) -> None:
    """Raise WireError for samples that are over a limit."""
    _count(len(frame.parts), wire.MAX_RANKS_PER_NODE, "samples")
    for part in frame.parts:
        check_part(part)


def _check_group(info: wire.GroupInfo) -> None:
    _texts((info.launch, info.name, info.description, info.backend))
    _numbers((info.timeout_s,))
    if info.gid != wire.gid_of(info.launch, info.name, info.ranks, info.epoch):
        raise WireError(f"group {info.gid[:40]!r} is not the id of its name, ranks and epoch")
    _count(len(info.ranks), wire.MAX_FRAME_BYTES, "characters of a rank set")


def check_ranges(groups: Iterable[wire.GroupInfo]) -> None:
    """Raise WireError for rank sets that cannot be read; only for groups that are new."""
    for info in groups:
        try:
            # Not listed: new descriptions of large groups may come with every heartbeat.
            last = ranges.highest(info.ranks)
        except BadRangeError as error:
            raise WireError(f"group {info.gid}: {error}") from error
        if last is None or last >= wire.MAX_WORLD_SIZE:
            raise WireError(
                f"group {info.gid} has no ranks, or ranks over {wire.MAX_WORLD_SIZE - 1}"
            )


def _check_ras(report: wire.RasReport) -> None:
    _texts((report.launch, report.version, *report.hosts))
    _numbers((report.age_s,))
    _count(len(report.communicators), wire.MAX_RAS_COMMUNICATORS, "communicators")
    members = sum(len(item.members) for item in report.communicators)
    _count(members, wire.MAX_RAS_MEMBERS, "members of communicators")
    _count(len(report.hosts), wire.MAX_RAS_MEMBERS, "hosts of communicators")
    for item in report.communicators:
        _texts((item.hash, *item.ops))
        _count(len(item.ops), wire.MAX_RAS_OPS, "kinds of ops")
        if not 0 <= item.size <= wire.MAX_WORLD_SIZE:
            raise WireError(f"a communicator of {item.size} ranks is not within the limits")
        for member in item.members:
            if not 0 <= member.rank < item.size or not -1 <= member.host < len(report.hosts):
                raise WireError("a member of a communicator contradicts its size or the hosts")
            if len(member.counts) not in (0, len(item.ops)) or min(member.counts, default=0) < 0:
                raise WireError("a member's counts are not those of its communicator")
            _texts((member.error,))


def _check_gpu(gpu: wire.GpuFacts) -> None:
    _texts((gpu.uuid, gpu.name, *gpu.throttle))
    _count(len(gpu.xid), MAX_XIDS, "Xid errors of a GPU")
    _count(len(gpu.throttle), MAX_XIDS, "throttle reasons of a GPU")


def _check_rank(beat: wire.RankBeat) -> None:
    if not 0 <= beat.rank < wire.MAX_WORLD_SIZE or not 0 <= beat.world_size <= wire.MAX_WORLD_SIZE:
        raise WireError(
            f"rank {beat.rank} of {beat.world_size} is not within 0 to {wire.MAX_WORLD_SIZE - 1}"
        )
    if beat.world_size and beat.rank >= beat.world_size:
        raise WireError(f"rank {beat.rank} cannot be in a world of {beat.world_size}")
    if not beat.launch or not 0 <= beat.restart <= 1_000_000:
        raise WireError("a rank names its launch and a restart count from 0 to 1,000,000")
    _count(len(beat.groups), wire.MAX_GROUPS_PER_RANK, "groups of a rank")
    _count(len(beat.calls), wire.MAX_CALLS, "open calls of a rank")
    _count(len(beat.p2p), wire.MAX_PEERS, "peers of a rank")
    _texts((beat.launch, beat.script, beat.phase, *beat.lacks))
    _check_process(beat.process)
    if beat.gpu is not None:
        _check_gpu(beat.gpu)
    _numbers((beat.beat_age_s, beat.phase_s, beat.phase_limit_s))
    _numbers([wait.age_s for wait in beat.waits])
    _numbers([call.age_s for call in beat.calls])
    for group in beat.groups:
        if len(group.entries) > wire.MAX_ENTRIES:
            _count(len(group.entries), wire.MAX_ENTRIES, "entries of a group")
        if group.tail is not None:
            _check_tail(group.tail)
        if not -1.0 <= group.stall_s <= wire.MAX_AGE_S or group.entries_age_s is not None:
            _numbers((group.stall_s, group.entries_age_s))
        if group.counter < 0:
            raise WireError("a counter cannot be negative")


def _check_process(process: wire.ProcessFacts) -> None:
    _count(len(process.children), MAX_CHILDREN, "children of a rank")
    _texts((process.exit_reason,))
    _numbers((process.main_cpu_share, process.main_still_s, process.main_delay_share))
    if process.ended_share is not None:
        _numbers((process.ended_share,))
    if process.children:
        _numbers(child.cpu_share for child in process.children)


def _check_tail(tail: wire.Tail) -> None:
    _count(len(tail.calls), wire.MAX_ENTRIES, "calls in a tail")
    _count(len(tail.kinds), wire.MAX_ENTRIES, "kinds of calls in a tail")
    if any(not 0 <= kind < len(tail.kinds) for _, kind in tail.calls):
        raise WireError("a tail refers to a kind of call that it does not hold")


def _count(count: int, limit: int, what: str) -> None:
    if count > limit:
        raise WireError(f"{count} {what} are over the limit of {limit}")


def _texts(texts: Iterable[str]) -> None:
    longest = max(map(len, texts), default=0)
    if longest > wire.MAX_TEXT:
        raise WireError(f"a text of {longest} characters is over the limit of {wire.MAX_TEXT}")


def _numbers(numbers: Iterable[float | None]) -> None:
    for number in numbers:
        if number is not None and not -1.0 <= number <= wire.MAX_AGE_S:
            raise WireError(f"{number} is no duration in seconds")
