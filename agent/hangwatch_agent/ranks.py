"""Turns what was observed of a rank into the wire's structs. Pure; bounds what a job can write.

Ages are differences of this node's monotonic clock, which probe and agent share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from hangwatch_agent import redaction, wire
from hangwatch_agent.groups import Described, Key
from hangwatch_agent.payload import (
    CallPayload,
    EntryPayload,
    GroupPayload,
    RecordPayload,
    TailPayload,
)

SILENT_AFTER_S = 3.0  # the probe writes once a second; two missed beats may be a busy node
MOVING_S = 3.0
MAX_SIZES = 32
MAX_SITE = 200
MAX_DIMENSIONS = 8
# Why a rank has no record.
NO_PROBE = "the probe is not loaded: start the job with `hangwatch run`"
NO_RECORD_YET = "the probe has not written a record yet"
RECORD_GONE = (
    "the probe's record has been removed from the run dir: give the job one that nobody clears "
    "(HANGWATCH_RUN_DIR)"
)


@dataclass(frozen=True)
class Position:
    """Who a rank is, as decided by discovery."""

    launch: wire.Launch
    rank: int
    world_size: int
    local_rank: int
    pid: int
    start_ticks: int
    is_certain: bool
    script: str
    inner_pid: int | None = None
    gpu: wire.GpuFacts | None = None


@dataclass(frozen=True)
class Translated:
    """A rank's beat and the groups that it refers to."""

    beat: wire.RankBeat
    groups: tuple[wire.GroupInfo, ...] = ()


def is_silent(payload: RecordPayload, now_ns: int) -> bool:
    """True when the probe's thread has missed its last beats."""
    return _age(payload.at_ns, now_ns) > SILENT_AFTER_S


def is_moving(payload: RecordPayload, now_ns: int) -> bool:
    """True when a counter has moved within the last seconds."""
    limit_ns = MOVING_S * 1e9
    return any(
        group.counter and 0 <= now_ns - group.moved_ns < limit_ns for group in payload.groups
    )


def bare(position: Position, process: wire.ProcessFacts, lack: str) -> Translated:
    """The beat of a rank without a record; `lack` says why there is none."""
    return Translated(msgspec.structs.replace(_base(position, process), lacks=(lack[:300],)))


def probed(
    position: Position,
    process: wire.ProcessFacts,
    payload: RecordPayload,
    described: Described,
    now_ns: int,
) -> Translated:
    """The beat of a rank with a record, whose groups `described` holds."""
    gids = described.gids
    beat = msgspec.structs.replace(
        _base(position, process),
        depth=wire.Depth.PROBE,
        beat_age_s=_age(payload.at_ns, now_ns),
        step=payload.step,
        phase=redaction.text(payload.phase[:100]),
        phase_s=_age(payload.phase_since_ns, now_ns) if payload.phase else 0.0,
        phase_limit_s=_limit_s(payload.phase_limit_s),
        is_initialised=payload.initialised,
        is_destroyed=payload.destroyed or payload.shutting_down,
        groups_begun=payload.groups_begun,
        groups=tuple(_group_beat(group, info.gid, now_ns) for group, info in described.pairs),
        calls=_calls(payload.calls, gids, now_ns),
        p2p=_counts(payload, gids),
        waits=_waits(payload, now_ns),
        lacks=(*_lacks(payload), *described.lacks),
    )
    return Translated(beat, described.infos)


def _limit_s(told_s: float | None) -> float | None:
    return told_s if told_s is not None and 0 <= told_s <= wire.MAX_AGE_S else None


def entry(payload: EntryPayload) -> wire.Entry:
    """One recorder entry, with its lists bounded."""
    return wire.Entry(
        seq=payload.seq,
        op=payload.op.rpartition(":")[2][:64],
        is_retired=payload.retired,
        is_started=payload.started,
        input_sizes=_sizes(payload.input_sizes),
        output_sizes=_sizes(payload.output_sizes),
        input_dtypes=_texts(payload.input_dtypes),
        output_dtypes=_texts(payload.output_dtypes),
        record_id=payload.record_id,
        timeout_s=None if payload.timeout_ms is None else payload.timeout_ms / 1000,
        site=payload.site[:MAX_SITE],
        root=payload.root,
    )


def with_answer(
    process: wire.ProcessFacts, *, is_silent: bool, socket_answers: bool | None
) -> wire.ProcessFacts:
    """Judge a silent probe: GIL held when its socket still answers, else unresponsive."""
    if not is_silent or process.is_being_read or process.state in ("gone", "Z", "X"):
        return process
    is_stopped = process.state in ("T", "t", "D")
    return msgspec.structs.replace(
        process,
        is_gil_held=socket_answers is True and not is_stopped,
        is_unresponsive=is_stopped or socket_answers is False,
    )


def material(process: wire.ProcessFacts, payload: RecordPayload | None) -> tuple[object, ...]:
    """What makes a heartbeat worth sending at once when it changes; plain progress does not."""
    state = process.state if process.state in ("T", "t", "Z", "gone") else ""
    if payload is None:
        return (state,)
    dumps = tuple(
        group.dumped_ns for group in payload.groups if group.dumped_counter == group.counter
    )
    waiting = tuple((wait.what, wait.rank) for wait in payload.waits)
    flags = (payload.certain, payload.initialised, payload.destroyed, payload.shutting_down)
    return (state, flags, payload.phase, waiting, dumps)


def _base(position: Position, process: wire.ProcessFacts) -> wire.RankBeat:
    return wire.RankBeat(
        launch=position.launch.key,
        restart=position.launch.restart,
        rank=position.rank,
        local_rank=position.local_rank,
        world_size=position.world_size,
        pid=position.pid,
        start_ticks=position.start_ticks,
        is_rank_certain=position.is_certain,
        script=redaction.text(position.script[:200]),
        process=process,
        inner_pid=position.inner_pid,
        gpu=position.gpu,
    )


def _group_beat(group: GroupPayload, gid: str, now_ns: int) -> wire.GroupBeat:
    is_current = group.dumped_ns > 0 and group.dumped_counter == group.counter
    entries = _newest(group.entries, is_current)
    seq = group.seq
    if seq is None and is_current and entries:
        seq = entries[-1].seq
    return wire.GroupBeat(
        gid=gid,
        counter=max(0, group.counter),
        stall_s=_age(group.moved_ns, now_ns),
        seq=seq,
        entries=entries,
        entries_age_s=_age(group.dumped_ns, now_ns) if group.dumped_ns else None,
        are_entries_current=is_current,
        finished=group.finished,
        started=group.started,
        tail=_tail(group.tail, len(entries)) if is_current and group.tail is not None else None,
    )


def _tail(payload: TailPayload, whole: int) -> wire.Tail | None:
    """As much of a tail as fits beside the `whole` entries, without what points nowhere."""
    room = wire.MAX_ENTRIES - whole
    kinds = payload.kinds[: wire.MAX_ENTRIES]
    calls = [call for call in payload.calls if 0 <= call[1] < len(kinds)]
    if room <= 0 or not calls:
        return None
    return wire.Tail(calls=tuple(calls[-room:]), kinds=tuple(entry(kind) for kind in kinds))


def _newest(entries: Sequence[EntryPayload], is_current: bool) -> tuple[wire.Entry, ...]:
    """Entries that travel: all of a stall, else what may still wait and the last one."""
    newest = entries[-wire.MAX_ENTRIES :]
    if not is_current:
        newest = [item for item in newest if not item.retired or item is newest[-1]]
    return tuple(entry(item) for item in newest)


def _calls(
    calls: Sequence[CallPayload], gids: dict[Key, str], now_ns: int
) -> tuple[wire.Call, ...]:
    return tuple(
        wire.Call(
            op=call.op[:64],
            gid=gids[call.group, call.epoch],
            age_s=_age(call.since_ns, now_ns),
            peer=call.peer,
            tag=call.tag,
            seq=call.seq,
            root=call.root,
            is_blocking=call.blocking,
            site=call.site[:MAX_SITE],
        )
        for call in calls[: wire.MAX_CALLS]
        if (call.group, call.epoch) in gids
    )


def _counts(payload: RecordPayload, gids: dict[Key, str]) -> tuple[wire.P2PCount, ...]:
    return tuple(
        wire.P2PCount(
            gid=gids[count.group, count.epoch],
            peer=count.peer,
            is_send=count.send,
            posted=count.posted,
            done=count.done,
        )
        for count in payload.p2p[: wire.MAX_PEERS]
        if (count.group, count.epoch) in gids
    )


def _waits(payload: RecordPayload, now_ns: int) -> tuple[wire.InitWait, ...]:
    return tuple(
        wire.InitWait(
            what=wait.what[:100],
            age_s=_age(wait.since_ns, now_ns),
            expected=wait.expected,
            detail=redaction.text(wait.detail[:300]),
            rank=wait.rank,
            stage=wait.stage[:16],
        )
        for wait in payload.waits[:64]
    )


def _lacks(payload: RecordPayload) -> tuple[str, ...]:
    lacks = [lack[:300] for lack in payload.lacks[:16]]
    if payload.omitted:
        lacks.append(f"{payload.omitted} items did not fit into the record")
    return tuple(lacks)


def _sizes(sizes: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(size[:MAX_DIMENSIONS]) for size in sizes[:MAX_SIZES])


def _texts(texts: list[str]) -> tuple[str, ...]:
    return tuple(text[:32] for text in texts[:MAX_SIZES])


def _age(since_ns: int, now_ns: int) -> float:
    return min(max(0.0, (now_ns - since_ns) / 1e9), wire.MAX_AGE_S)
