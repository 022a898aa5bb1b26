"""Makes frames fit into the wire's limit, the least important first. Sends nothing.

A frame over the limit would cost the connection, and the next one as well: a node with many ranks
and groups would never be heard. So detail goes before groups, of those ranks that take the most,
and no rank ever goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec

from hangwatch_agent import wire

SURE_TO_FIT = 8  # threads of 256 frames with the longest names
HEAD_BYTES = 64  # of the lists of ranks and groups themselves
_encoder = msgspec.msgpack.Encoder()
_LACK = "part of this rank's state did not fit into the heartbeat"


def heartbeat(frame: wire.Heartbeat) -> tuple[wire.Heartbeat, bytes]:
    """What can be sent of a heartbeat, and its bytes.

    1. Answers of NCCL RAS go, the largest first. 2. Of ranks that take more than an equal share of
    the frame, old recorder entries go; then counts, calls, children and all but one wait; then
    groups: those stay that are waited in, then those that moved last. With groups go the
    descriptions that nobody refers to any more. Ranks within their share lose nothing: what one
    job writes costs no other. Groups beyond their number are described by the next heartbeats.
    """
    if len(frame.groups) > wire.MAX_NEW_GROUPS:
        frame = msgspec.structs.replace(frame, groups=frame.groups[: wire.MAX_NEW_GROUPS])
    data = wire.encode(frame)
    while len(data) > wire.MAX_FRAME_BYTES and frame.ras:
        largest = max(frame.ras, key=_members)
        left = tuple(report for report in frame.ras if report is not largest)
        frame = msgspec.structs.replace(frame, ras=left)
        data = wire.encode(frame)
    if len(data) > wire.MAX_FRAME_BYTES:
        frame = _cut(frame)
        data = wire.encode(frame)
    return frame, data


def _cut(frame: wire.Heartbeat) -> wire.Heartbeat:
    """The frame after as many cuts as it takes, of the ranks that are over their share."""
    rest = wire.encode(msgspec.structs.replace(frame, ranks=(), groups=()))
    room = wire.MAX_FRAME_BYTES - len(rest) - HEAD_BYTES
    for cut in _CUTS:
        sizes = _sizes(frame)
        if sum(sizes) <= room:
            break
        share = room / len(sizes)
        ranks = tuple(
            cut(beat) if size > share else beat
            for beat, size in zip(frame.ranks, sizes, strict=True)
        )
        used = {group.gid for beat in ranks for group in beat.groups}
        groups = tuple(info for info in frame.groups if info.gid in used)
        frame = msgspec.structs.replace(frame, ranks=ranks, groups=groups)
    return frame


def _sizes(frame: wire.Heartbeat) -> list[float]:
    """Bytes that each rank takes, its part of the descriptions of its groups included."""
    users = Counter(group.gid for beat in frame.ranks for group in beat.groups)
    parts = {
        info.gid: len(_encoder.encode(info)) / users[info.gid]
        for info in frame.groups
        if info.gid in users
    }
    return [
        len(_encoder.encode(beat)) + sum(parts.get(group.gid, 0.0) for group in beat.groups)
        for beat in frame.ranks
    ]


def part(frame: wire.CapturePart) -> bytes:
    """The bytes of a capture part: without entries and children's stacks, then without stacks."""
    data = wire.encode(frame)
    for stacks in (frame.stacks[:1], ()):
        if len(data) <= wire.MAX_FRAME_BYTES:
            break
        reason = f"{len(data)} bytes of stacks are over the limit of one frame"
        data = wire.encode(
            msgspec.structs.replace(
                frame,
                stacks=stacks,
                entries=(),
                sources=(),
                reason=reason,
                remedy="capture fewer kinds at once",
            )
        )
    return data


def sample(part: wire.CapturePart) -> bytes:
    """The bytes of a look at one rank: without children's stacks, then with few threads."""
    data = wire.encode(wire.Samples(parts=(part,)))
    if len(data) <= wire.MAX_FRAME_BYTES:
        return data
    main = part.stacks[0]
    for threads in (main.threads, main.threads[:SURE_TO_FIT]):
        stacks = (msgspec.structs.replace(main, threads=threads),)
        data = wire.encode(wire.Samples(parts=(msgspec.structs.replace(part, stacks=stacks),)))
        if len(data) <= wire.MAX_FRAME_BYTES:
            break
    return data


def _last_entries(beat: wire.RankBeat) -> wire.RankBeat:
    groups = tuple(
        msgspec.structs.replace(group, entries=group.entries[-1:], tail=None)
        for group in beat.groups
    )
    return msgspec.structs.replace(beat, groups=groups, lacks=(_LACK,))


def _no_details(beat: wire.RankBeat) -> wire.RankBeat:
    process = msgspec.structs.replace(beat.process, children=())
    return msgspec.structs.replace(beat, process=process, calls=(), p2p=(), waits=beat.waits[:1])


def _fewer_groups(beat: wire.RankBeat, keep: int) -> wire.RankBeat:
    return msgspec.structs.replace(beat, groups=tuple(sorted(beat.groups, key=_weight)[:keep]))


def _members(report: wire.RasReport) -> int:
    return sum(len(item.members) for item in report.communicators)


def _weight(group: wire.GroupBeat) -> tuple[bool, float]:
    return all(entry.is_retired for entry in group.entries), group.stall_s


_CUTS: tuple[Callable[[wire.RankBeat], wire.RankBeat], ...] = (
    _last_entries,
    _no_details,
    *(partial(_fewer_groups, keep=keep) for keep in (256, 64, 16, 4, 0)),
)
