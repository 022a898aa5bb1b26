"""Makes model objects for scenes and tests of pages: plain values, any replaced by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hangwatch_agent import wire
from hangwatch_server import model, ranges

NOW = datetime.now(UTC)


def verdict(job: str, name: str, state: model.State, **changes: object) -> model.Verdict:
    size = int(str(changes.pop("world_size", 8)))
    values: dict[str, object] = {
        "job": job,
        "name": name,
        "attempt": 1,
        "index": 7,
        "state": state,
        "kind": model.Kind.NONE,
        "confidence": 0.0,
        "since": NOW - timedelta(seconds=252),
        "stalled_s": 0.0,
        "summary": "",
        "group": None,
        "seq": None,
        "op": "",
        "culprits": (),
        "culprit_ranks": "",
        "waiting": "",
        "path": (),
        "edges": (),
        "cycle": (),
        "sides": (),
        "evidence": (),
        "hints": (),
        "coverage": model.Coverage(reporting=size, world_size=size, silent=""),
        "action": model.Action(),
        "limits": model.Limits(
            suspect_after_s=10,
            confirm_after_s=15,
            why="3 \u00d7 p99 (0.4 s) is under the 10 s floor",
        ),
    }
    return model.Verdict(**{**values, **changes})  # type: ignore[arg-type]


def job(
    verdict: model.Verdict, nodes: tuple[str, ...] = ("node-a", "node-b"), **changes: object
) -> model.Job:
    values: dict[str, object] = {
        "id": verdict.job,
        "name": verdict.name,
        "attempt": 1,
        "world_size": verdict.coverage.world_size,
        "reporting": verdict.coverage.reporting,
        "state": verdict.state,
        "verdict": verdict,
        "nodes": nodes,
        "depth": wire.Depth.PROBE,
        "first_seen": NOW - timedelta(hours=3, minutes=12),
        "last_seen": NOW,
        "progress_age_s": verdict.stalled_s or 0.3,
        "script": "train.py",
        "step": 1042,
    }
    return model.Job(**{**values, **changes})  # type: ignore[arg-type]


def rank(
    number: int, state: str = "healthy", per_node: int = 4, **changes: object
) -> model.RankRow:
    values: dict[str, object] = {
        "rank": number,
        "node": node_name(number // per_node),
        "local_rank": number % per_node,
        "pid": 800 + number,
        "state": state,
        "link": model.Link.LIVE,
        "depth": wire.Depth.PROBE,
        "age_s": 0.4,
        "process_state": "S",
        "step": 1042,
        "phase": "",
        "waits_in": "dp-1 all_reduce #1042" if state == "waiting" else "",
        "waits_s": 252.0 if state == "waiting" else None,
        "condition": None,
        "where": "",
        "gpu": number % per_node,
    }
    return model.RankRow(**{**values, **changes})  # type: ignore[arg-type]


def rank_detail(
    job: model.Job, row: model.RankRow, groups: Sequence[model.GroupRow]
) -> model.RankDetail:
    """A rank as its page shows it: a process with one loader worker, and the job's groups."""
    own = [group for group in groups if row.rank in ranges.parse(group.ranks)]
    return model.RankDetail(
        job=job.id,
        attempt=job.attempt,
        world_size=job.world_size,
        row=row,
        script=job.script,
        inner_pid=None,
        phase_s=12.0,
        phase_limit_s=None,
        beat_age_s=0.3,
        is_rank_certain=True,
        process=_process(row),
        gpu=_gpu(row.gpu) if row.gpu is not None else None,
        stack=None,
        groups=tuple(_rank_group(row, group) for group in own),
        calls=tuple(_call(row, group) for group in own),
        waits=(),
    )


def _process(row: model.RankRow) -> model.RankProcess:
    worker = model.RankChild(
        pid=831,
        name="python",
        role="loader",
        state="D",
        wchan="nfs4_wait",
        cpu_share=0.0,
        parent=row.pid or 0,
    )
    return model.RankProcess(
        state=row.process_state,
        wchan="pipe_read",
        cpu_s=512.4,
        main_cpu_share=0.0,
        main_still_s=252.0,
        main_delay_share=0.0,
        io_bytes=81_788_928,
        threads=9,
        exit_code=None,
        exit_signal=None,
        exit_reason="",
        is_unresponsive=False,
        is_gil_held=False,
        children=(worker,) if row.state == "culprit" else (),
    )


def _gpu(index: int) -> model.RankGpu:
    return model.RankGpu(
        index=index,
        name="NVIDIA H100 80GB HBM3",
        uuid="GPU-5d41402a",
        utilisation=0.0,
        power_w=118.0,
        power_limit_w=700.0,
        memory_used_bytes=61_203_283_968,
        memory_total_bytes=85_520_809_984,
        temperature_c=41.0,
        ecc_errors=0,
        xid=(),
        throttle=(),
    )


def _rank_group(row: model.RankRow, group: model.GroupRow) -> model.RankGroup:
    is_behind = row.rank in ranges.parse(group.behind)
    at = group.at or 0
    return model.RankGroup(
        gid=group.gid,
        name=group.name,
        description=group.description,
        backend=group.backend,
        size=group.size,
        seq=at - is_behind,
        at=at,
        behind=int(is_behind),
        op="" if is_behind else group.op,
        stall_s=group.stalled_s,
    )


def _call(row: model.RankRow, group: model.GroupRow) -> model.RankCall:
    is_waiting = row.rank in ranges.parse(group.waiting)
    return model.RankCall(
        gid=group.gid,
        group=group.name,
        op="all_reduce",
        seq=group.at,
        sizes="[1024, 1024] Float",
        is_finished=not is_waiting,
        peer=None,
        root=None,
        site="train.py:147 in train",
        age_s=None,
    )


def group(name: str, members: str, **changes: object) -> model.GroupRow:
    values: dict[str, object] = {
        "gid": "gid" + hashlib.sha256(f"{name} {members}".encode()).hexdigest()[:8],
        "name": name,
        "description": "",
        "backend": "gloo",
        "ranks": members,
        "size": len(ranges.parse(members)),
        "epoch": 1,
        "at": 1042,
        "op": "",
        "behind": "",
        "waiting": "",
        "stalled_s": 0.0,
        "family": re.sub(r"\d+", "", name).strip(" _-.:/"),
    }
    return model.GroupRow(**{**values, **changes})  # type: ignore[arg-type]


def group_view(row: model.GroupRow) -> model.GroupView:
    """The group behind a row."""
    return model.GroupView(
        gid=row.gid,
        name=row.name,
        description=row.description,
        backend=row.backend,
        ranks=ranges.parse(row.ranks),
    )


def lags(row: model.GroupRow) -> tuple[model.Lag, ...]:
    """Whoever the row says is behind is one call behind."""
    behind = set(ranges.parse(row.behind))
    return tuple(
        model.Lag(
            rank=rank,
            gid=row.gid,
            seq=None if row.at is None else row.at - (rank in behind),
            lag=int(rank in behind),
        )
        for rank in ranges.parse(row.ranks)
    )


def node_name(index: int) -> str:
    return f"node-{chr(97 + index)}" if index < 26 else f"node-{index:03d}"


_FRAMES = (
    wire.Frame(name="read", file="/usr/lib/python3.11/site-packages/storage/client.py", line=212),
    wire.Frame(name="__getitem__", file="/home/ada/runs/gpt/train.py", line=88),
    wire.Frame(name="fetch", file="/opt/torch/utils/data/_utils/fetch.py", line=54),
    wire.Frame(name="_next_data", file="/opt/torch/utils/data/dataloader.py", line=764),
    wire.Frame(name="__next__", file="/opt/torch/utils/data/dataloader.py", line=701),
    wire.Frame(name="train", file="/home/ada/runs/gpt/train.py", line=141),
    wire.Frame(name="main", file="/home/ada/runs/gpt/train.py", line=190),
    wire.Frame(name="<module>", file="/home/ada/runs/gpt/train.py", line=204),
)
_WAITING_FRAMES = (
    wire.Frame(name="all_reduce", file="/opt/torch/distributed/distributed_c10d.py", line=3019),
    wire.Frame(name="_engine_run_backward", file="/opt/torch/autograd/graph.py", line=841),
    wire.Frame(name="backward", file="/opt/torch/_tensor.py", line=648),
    wire.Frame(name="train", file="/home/ada/runs/gpt/train.py", line=147),
    wire.Frame(name="main", file="/home/ada/runs/gpt/train.py", line=190),
    wire.Frame(name="<module>", file="/home/ada/runs/gpt/train.py", line=204),
)


_SOURCES = (
    wire.Source(
        file="/home/ada/runs/gpt/train.py",
        line=88,
        first=86,
        lines=(
            "        path = self.files[index]",
            "        with self.lock:",
            "            return decode(self.storage.read(path))  # one shard at a time",
            "",
            "    def __len__(self) -> int:",
        ),
    ),
    wire.Source(
        file="/home/ada/runs/gpt/train.py",
        line=141,
        first=141,
        lines=("        for batch in loader:",),
    ),
    wire.Source(
        file="/home/ada/runs/gpt/train.py",
        line=190,
        first=190,
        lines=("    train(model, loader, optimizer, steps=arguments.steps)",),
    ),
)


def tree(capture: str, odd: str, rest: str, missing: tuple[model.PartRow, ...] = ()) -> model.Tree:
    """Two classes of ranks that part inside `train`."""
    everyone = ranges.text((*ranges.parse(odd), *ranges.parse(rest)))
    parting = (_chain("a1", _FRAMES[:5], odd), _chain("b2", _WAITING_FRAMES[:3], rest))
    root: tuple[model.TreeNode, ...] = parting
    for frame in _FRAMES[5:]:
        root = (_tree_node(frame, everyone, root),)
    return model.Tree(
        capture=capture,
        roots=root,
        classes=(
            _stack_class("a1", odd, _FRAMES, model.Activity.DATALOADER),
            _stack_class("b2", rest, _WAITING_FRAMES, model.Activity.COLLECTIVE),
        ),
        missing=missing,
        sources=_SOURCES,
    )


def _chain(signature: str, frames: tuple[wire.Frame, ...], members: str) -> model.TreeNode:
    children: tuple[model.TreeNode, ...] = ()
    for frame in frames:
        node = _tree_node(frame, members, children)
        children = (node if children else replace(node, signatures=(signature,)),)
    return children[0]


def _tree_node(
    frame: wire.Frame, members: str, children: tuple[model.TreeNode, ...]
) -> model.TreeNode:
    return model.TreeNode(
        name=frame.name,
        file=frame.file,
        line=frame.line,
        ranks=members,
        count=len(ranges.parse(members)),
        is_framework="/opt/" in frame.file or "site-packages" in frame.file,
        is_native=False,
        is_frozen=True,
        children=children,
    )


def _stack_class(
    signature: str, members: str, frames: tuple[wire.Frame, ...], activity: model.Activity
) -> model.StackClass:
    return model.StackClass(
        signature=signature,
        ranks=members,
        count=len(ranges.parse(members)),
        activity=activity,
        where="train.py:88 in __getitem__",
        frames=frames,
        is_frozen=True,
    )


def incident(verdict: model.Verdict, **changes: object) -> model.Incident:
    opened = NOW - timedelta(seconds=252)
    values: dict[str, object] = {
        "id": verdict.incident or "inc0",
        "job": verdict.job,
        "job_name": verdict.name,
        "attempt": 1,
        "state": model.IncidentState.CONFIRMED,
        "kind": verdict.kind,
        "summary": verdict.summary,
        "culprit_ranks": verdict.culprit_ranks,
        "culprit_nodes": tuple(sorted({culprit.node for culprit in verdict.culprits})),
        "opened_at": opened,
        "confirmed_at": opened + timedelta(seconds=15),
        "ended_at": None,
        "end_reason": "",
        "acknowledged_by": "",
        "acknowledged_at": None,
        "snoozed_until": None,
        "verdict": verdict,
        "history": (
            model.IncidentEvent(at=opened, old="", new="open", why="nobody moved for 10 s"),
            model.IncidentEvent(
                at=opened + timedelta(seconds=15),
                old="open",
                new="confirmed",
                why="rank 5 is frozen: no CPU, no I/O, the same stack in 3 captures over 10 s",
            ),
        ),
    }
    return model.Incident(**{**values, **changes})  # type: ignore[arg-type]


def capture(capture_id: str, job: str, members: str, **changes: object) -> model.Capture:
    values: dict[str, object] = {
        "id": capture_id,
        "job": job,
        "attempt": 1,
        "incident": None,
        "state": model.CaptureState.COMPLETE,
        "requested_at": NOW - timedelta(seconds=40),
        "requested_by": "",
        "ranks": members,
        "kinds": ("stacks",),
        "native": False,
        "parts": tuple(part(number) for number in ranges.parse(members)),
    }
    return model.Capture(**{**values, **changes})  # type: ignore[arg-type]


def summary(capture: model.Capture) -> model.CaptureSummary:
    """What `db.captures.summaries` says of a capture."""
    return model.CaptureSummary(
        id=capture.id,
        state=capture.state,
        requested_at=capture.requested_at,
        stored_at=capture.requested_at + timedelta(seconds=2) if capture.parts else None,
        requested_by=capture.requested_by,
        ranks=capture.ranks,
        kinds=capture.kinds,
        stacks=sum(row.has_stacks for row in capture.parts),
        entries=sum(row.has_entries for row in capture.parts),
        missing=sum(not row.has_stacks and not row.has_entries for row in capture.parts),
    )


def part(number: int, reason: str = "", remedy: str = "") -> model.PartRow:
    return model.PartRow(
        rank=number,
        node=node_name(number // 4),
        pid=800 + number,
        has_stacks=not reason,
        has_entries=not reason,
        reason=reason,
        remedy=remedy,
    )


def node(name: str, **changes: object) -> model.NodeRow:
    incidents = int(str(changes.pop("incidents", 0)))
    values: dict[str, object] = {
        "name": name,
        "link": model.Link.LIVE,
        "version": "0.1.0",
        "age_s": 0.4,
        "ranks": 8,
        "jobs": ("a1b2c3d4e5f6",),
        "stacks": "",
        "stacks_remedy": "",
        "depth": wire.Depth.PROBE,
        "incidents_30d": incidents,
        "dropped": 0,
        "last_seen": NOW,
        "gpu_hours_lost_30d": incidents * 12.4,
        "last_incident_at": NOW - timedelta(minutes=4) if incidents else None,
    }
    return model.NodeRow(**{**values, **changes})  # type: ignore[arg-type]


def silent_node() -> model.NodeRow:
    return node("node-f", link=model.Link.LOST, age_s=92.0, jobs=())


def blind_node() -> model.NodeRow:
    return node(
        "node-g",
        stacks="py-spy may not read other processes here",
        stacks_remedy="sudo sysctl kernel.yama.ptrace_scope=0",
    )
