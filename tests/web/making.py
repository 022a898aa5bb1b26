"""Makes model objects for scenes and tests of pages: plain values, any replaced by name."""

from __future__ import annotations

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


def group(name: str, members: str, **changes: object) -> model.GroupRow:
    values: dict[str, object] = {
        "gid": f"gid{abs(hash(name)) % 10**8:08d}",
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
    }
    return model.GroupRow(**{**values, **changes})  # type: ignore[arg-type]


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
                at=opened + timedelta(seconds=2), old="open", new="evidence", why="8 stacks stored"
            ),
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
