"""Everything a snapshot knows of one rank, for its page: facts side by side, no judgement."""

from __future__ import annotations

from collections.abc import Iterator

from hangwatch_agent import wire
from hangwatch_server import garbage
from hangwatch_server.diagnose import rows, survey
from hangwatch_server.diagnose.settings import DEFAULT
from hangwatch_server.diagnose.standing import Standing
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import (
    Finding,
    GroupView,
    RankCall,
    RankChild,
    RankDetail,
    RankGpu,
    RankGroup,
    RankProcess,
    RankRow,
    RankStack,
    RankWait,
    Snapshot,
)

MAX_CALLS = 40
MAX_GROUPS = 200
_MAX_SIZES = 4


def rank_detail(snapshot: Snapshot, finding: Finding, rank: int) -> RankDetail:
    """All of this rank; KeyError for one that the job does not have."""
    with garbage.uncollected():
        looked = survey.survey(snapshot, DEFAULT)
        return _detail(looked, rows.rank_row(looked, finding, rank), rank)


def _detail(looked: Survey, row: RankRow, rank: int) -> RankDetail:
    view = looked.snapshot.ranks[rank]
    beat = view.beat
    return RankDetail(
        job=looked.snapshot.job,
        attempt=looked.snapshot.attempt,
        world_size=looked.snapshot.world_size,
        row=row,
        script=beat.script if beat is not None else "",
        inner_pid=beat.inner_pid if beat is not None else None,
        phase_s=beat.phase_s if beat is not None else 0.0,
        phase_limit_s=beat.phase_limit_s if beat is not None else None,
        beat_age_s=beat.beat_age_s if beat is not None else None,
        is_rank_certain=beat is not None and beat.is_rank_certain,
        process=process_of(beat.process) if beat is not None else None,
        gpu=gpu_of(beat.gpu) if beat is not None and beat.gpu is not None else None,
        stack=_stack(looked, rank),
        groups=tuple(_groups(looked, beat)) if beat is not None else (),
        calls=tuple(_calls(looked, beat)) if beat is not None else (),
        waits=tuple(_wait(wait) for wait in beat.waits) if beat is not None else (),
    )


def process_of(facts: wire.ProcessFacts) -> RankProcess:
    return RankProcess(
        state=facts.state,
        wchan=facts.wchan,
        cpu_s=facts.cpu_s,
        main_cpu_share=facts.main_cpu_share,
        main_still_s=facts.main_still_s,
        main_delay_share=facts.main_delay_share,
        io_bytes=facts.io_bytes,
        threads=facts.threads,
        exit_code=facts.exit_code,
        exit_signal=facts.exit_signal,
        exit_reason=facts.exit_reason,
        is_unresponsive=facts.is_unresponsive,
        is_gil_held=facts.is_gil_held,
        children=tuple(_child(child) for child in facts.children),
    )


def _child(child: wire.ChildFacts) -> RankChild:
    return RankChild(
        pid=child.pid,
        name=child.name,
        role=child.role,
        state=child.state,
        wchan=child.wchan,
        cpu_share=child.cpu_share,
        parent=child.parent,
    )


def gpu_of(gpu: wire.GpuFacts) -> RankGpu:
    return RankGpu(
        index=gpu.index,
        name=gpu.name,
        uuid=gpu.uuid,
        utilisation=gpu.utilisation,
        power_w=gpu.power_w,
        power_limit_w=gpu.power_limit_w,
        memory_used_bytes=gpu.memory_used_bytes,
        memory_total_bytes=gpu.memory_total_bytes,
        temperature_c=gpu.temperature_c,
        ecc_errors=gpu.ecc_errors,
        xid=gpu.xid,
        throttle=gpu.throttle,
    )


def _wait(wait: wire.InitWait) -> RankWait:
    return RankWait(what=wait.what, age_s=wait.age_s, expected=wait.expected, detail=wait.detail)


def _stack(looked: Survey, rank: int) -> RankStack | None:
    stack = looked.snapshot.ranks[rank].stack
    if stack is None:
        return None
    return RankStack(
        age_s=stack.age_s,
        where=stack.where,
        leaf=stack.leaf,
        activity=stack.activity,
        detail=stack.detail,
        still_captures=stack.same_leaf_captures,
        still_s=stack.same_leaf_s,
        capture=stack.capture if stack.is_kept else "",
    )


def _groups(looked: Survey, beat: wire.RankBeat) -> Iterator[RankGroup]:
    for words in beat.groups[:MAX_GROUPS]:
        group = looked.snapshot.groups.get(words.gid)
        if group is not None:
            yield _group(looked, beat.rank, group, words)


def _group(looked: Survey, rank: int, group: GroupView, words: wire.GroupBeat) -> RankGroup:
    standings = looked.standings.get(group.gid, {})
    own = standings.get(rank)
    entered = [held.entered for held in standings.values() if held.entered is not None]
    at = max(entered, default=None)
    seq = own.entered if own is not None else None
    return RankGroup(
        gid=group.gid,
        name=group.name,
        description=group.description,
        backend=group.backend,
        size=len(group.ranks),
        seq=seq,
        at=at,
        behind=None if at is None or seq is None else at - seq,
        op=_front(own),
        stall_s=words.stall_s,
    )


def _front(own: Standing | None) -> str:
    return own.fronts[0].op if own is not None and own.fronts else ""


def _calls(looked: Survey, beat: wire.RankBeat) -> list[RankCall]:
    """Calls that have not returned, then the recorder's newest, in the order of the program."""
    groups = looked.snapshot.groups
    recorded = [(words.gid, entry) for words in beat.groups for entry in words.entries]
    recorded.sort(key=lambda item: (item[1].record_id, item[1].seq), reverse=True)
    return [
        *(_open_call(groups, call) for call in beat.calls[:MAX_CALLS]),
        *(_recorded(groups, gid, entry) for gid, entry in recorded[:MAX_CALLS]),
    ]


def _open_call(groups: dict[str, GroupView], call: wire.Call) -> RankCall:
    return RankCall(
        gid=call.gid,
        group=_name(groups, call.gid),
        op=call.op,
        seq=call.seq,
        sizes="",
        is_finished=False,
        peer=call.peer,
        root=call.root,
        site=call.site,
        age_s=call.age_s,
    )


def _recorded(groups: dict[str, GroupView], gid: str, entry: wire.Entry) -> RankCall:
    return RankCall(
        gid=gid,
        group=_name(groups, gid),
        op=entry.op,
        seq=entry.seq,
        sizes=_sizes(entry),
        is_finished=entry.is_retired,
        peer=None,
        root=entry.root,
        site=entry.site,
        age_s=None,
    )


def _name(groups: dict[str, GroupView], gid: str) -> str:
    group = groups.get(gid)
    return group.name if group is not None else ""


def _sizes(entry: wire.Entry) -> str:
    shapes = [str(list(size)) for size in entry.input_sizes[:_MAX_SIZES]]
    more = ["…"] if len(entry.input_sizes) > _MAX_SIZES else []
    return " ".join([*shapes, *more, *entry.input_dtypes[:1]])
