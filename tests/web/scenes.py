"""Hand-made jobs, incidents and captures: each state that a page must show well.

Plain model objects, no server: what Hangwatch really says of a real job is tested elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hangwatch_agent import wire
from hangwatch_server import model, ranges

NOW = datetime.now(UTC)
HOSTILE = '<script>alert("x")</script> \u202egnp.evil\u202c 🚂 ' + "very-long-name-" * 260


@dataclass(kw_only=True)
class Scene:
    """What one server knows."""

    jobs: list[model.Job] = field(default_factory=list)
    ranks: dict[str, tuple[model.RankRow, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[model.GroupRow, ...]] = field(default_factory=dict)
    incidents: list[model.Incident] = field(default_factory=list)
    captures: dict[str, model.Capture] = field(default_factory=dict)
    trees: dict[str, model.Tree] = field(default_factory=dict)
    nodes: list[model.NodeRow] = field(default_factory=list)

    def add(self, job: model.Job, rows: tuple[model.RankRow, ...], *groups: model.GroupRow) -> None:
        self.jobs.append(job)
        self.ranks[job.id] = rows
        self.groups[job.id] = groups


def everything() -> Scene:
    """One job of each kind, as on a busy day."""
    scene = Scene()
    for add in (_hung, _mismatch, _deadlock, _suspected, _unknown, _large, _healthy, _hostile):
        add(scene)
    _others(scene)
    scene.nodes = [_node("node-a"), _node("node-b", incidents=3), _silent_node(), _blind_node()]
    return scene


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
        "node": _node_name(number // per_node),
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


def _node_name(index: int) -> str:
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
    parting = (_chain(_FRAMES[:5], odd), _chain(_WAITING_FRAMES[:3], rest))
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


def _chain(frames: tuple[wire.Frame, ...], members: str) -> model.TreeNode:
    children: tuple[model.TreeNode, ...] = ()
    for frame in frames:
        children = (_tree_node(frame, members, children),)
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
        node=_node_name(number // 4),
        pid=800 + number,
        has_stacks=not reason,
        has_entries=not reason,
        reason=reason,
        remedy=remedy,
    )


def _hung(scene: Scene) -> None:
    said = verdict(
        "a1b2c3d4e5f6",
        "gpt-7b",
        model.State.HUNG,
        kind=model.Kind.MISSING_RANKS,
        confidence=0.94,
        stalled_s=252.4,
        summary=(
            "Rank 5 (node-b, pid 805) never entered all_reduce #1042 of group dp-1; 7 ranks have "
            "waited 4 min 12 s. It is in its dataloader: train.py:88 in __getitem__."
        ),
        group=model.GroupRef(id="9f01", name="dp-1", ranks="1,3,5,7"),
        seq=1042,
        op="all_reduce",
        culprits=(
            model.Culprit(
                rank=5,
                node="node-b",
                pid=805,
                gpu=1,
                condition=model.Condition.IN_DATALOADER,
                where="train.py:88 in __getitem__",
                detail="worker 831 is in D state in nfs4_wait",
            ),
        ),
        culprit_ranks="5",
        waiting="0-4,6-7",
        path=(
            model.PathStep(rank=0, waits_in="tp-0 all_reduce #9311", for_=(1,)),
            model.PathStep(rank=1, waits_in="dp-1 all_reduce #1042", for_=(5,)),
            model.PathStep(
                rank=5, waits_in="in its dataloader: train.py:88 in __getitem__", for_=()
            ),
        ),
        edges=(
            model.WaitEdge(
                ranks="1,3,7",
                call="dp-1 all_reduce #1042",
                missing="5",
                where="train.py:147 in train",
            ),
            model.WaitEdge(ranks="0,2,4,6", call="tp-0 … tp-3 all_reduce #9311", missing="1,3,5,7"),
        ),
        evidence=(
            model.Evidence(
                kind="counters", text="3 ranks at #1042, rank 5 at #1041, in two samples 10 s apart"
            ),
            model.Evidence(
                kind="stack", text="unchanged in 3 captures over 10 s", capture="cap-hung"
            ),
            model.Evidence(
                kind="process", text="0 % CPU on the main thread, no I/O, children included"
            ),
        ),
        hints=(
            "Storage: loader worker 831 waits in D state in nfs4_wait. Check the mount on node-b.",
        ),
        action=model.Action(
            advice="restart_excluding", exclude_nodes=("node-b",), evidence_stored=True
        ),
        incident="inc-hung",
    )
    rows = tuple(
        rank(
            number,
            "culprit" if number == 5 else "waiting",
            condition=model.Condition.IN_DATALOADER if number == 5 else None,
            where="train.py:88 in __getitem__" if number == 5 else "",
        )
        for number in range(8)
    )
    behind = group(
        "dp-1",
        "1,3,5,7",
        op="all_reduce [26 MB float]",
        behind="5",
        waiting="1,3,7",
        stalled_s=252.0,
    )
    scene.add(
        job(said),
        rows,
        behind,
        group("tp-0", "0,1", at=9311, op="all_reduce [4 MB float]", waiting="0", stalled_s=251.0),
        group("world", "0-7", at=88),
    )
    scene.incidents.append(incident(said, captures=("cap-hung",)))
    scene.captures["cap-hung"] = capture("cap-hung", said.job, "0-7", incident="inc-hung")
    scene.trees["cap-hung"] = tree("cap-hung", "5", "0-4,6-7")
    missing = (
        part(6, "py-spy may not read the process", "sudo sysctl kernel.yama.ptrace_scope=0"),
        part(7, "node-b did not answer within 15 s"),
    )
    scene.captures["cap-taking"] = capture(
        "cap-taking",
        said.job,
        "0-7",
        state=model.CaptureState.TAKING,
        requested_by="ada",
        parts=(*(part(number) for number in range(6)), *missing),
    )
    scene.trees["cap-taking"] = tree("cap-taking", "5", "0-4", missing)


def _mismatch(scene: Scene) -> None:
    said = verdict(
        "b2c3d4e5f6a1",
        "sft-join",
        model.State.HUNG,
        kind=model.Kind.MISMATCH,
        confidence=0.9,
        stalled_s=61.0,
        world_size=2,
        summary="Ranks 0 and 1 made different calls at #29 of world: all_reduce against barrier.",
        group=model.GroupRef(id="77aa", name="world", ranks="0-1"),
        seq=29,
        op="all_reduce",
        culprits=(
            model.Culprit(
                rank=0,
                node="node-a",
                pid=800,
                gpu=0,
                condition=model.Condition.IN_COLLECTIVE,
                where="train.py:61 in main",
            ),
            model.Culprit(
                rank=1,
                node="node-a",
                pid=801,
                gpu=1,
                condition=model.Condition.IN_COLLECTIVE,
                where="train.py:70 in main",
            ),
        ),
        culprit_ranks="0-1",
        sides=(
            model.MismatchSide(
                ranks="0", call="all_reduce [1] int", where="train.py:61 in main", is_odd=True
            ),
            model.MismatchSide(ranks="1", call="barrier", where="train.py:70 in main", is_odd=True),
        ),
        evidence=(
            model.Evidence(kind="call", text="recorder entries of both ranks differ at #29"),
        ),
        hints=("A barrier inside join() misaligns join()'s own all_reduces: remove it.",),
        incident="inc-mismatch",
    )
    scene.add(
        job(said, ("node-a",)),
        tuple(rank(n, "culprit", condition=model.Condition.IN_COLLECTIVE) for n in range(2)),
        group("world", "0-1", at=29, op="all_reduce", waiting="0-1", stalled_s=61.0),
    )
    scene.incidents.append(incident(said))


def _deadlock(scene: Scene) -> None:
    steps = tuple(
        model.PathStep(
            rank=number,
            waits_in=f"pp-{number} recv from {(number + 1) % 4}",
            for_=((number + 1) % 4,),
        )
        for number in range(4)
    )
    said = verdict(
        "c3d4e5f6a1b2",
        "pipeline-4",
        model.State.HUNG,
        kind=model.Kind.DEADLOCK,
        confidence=0.97,
        stalled_s=33.0,
        world_size=4,
        summary="Ranks 0-3 wait for each other in a ring of receives.",
        culprits=tuple(
            model.Culprit(
                rank=n,
                node="node-a",
                pid=800 + n,
                gpu=n,
                condition=model.Condition.IN_COLLECTIVE,
                where="stage.py:31 in forward",
            )
            for n in range(4)
        ),
        culprit_ranks="0-3",
        cycle=steps,
        path=steps,
        evidence=(model.Evidence(kind="call", text="four blocking receives, none with its send"),),
        hints=(
            "Let even stages send first and odd stages receive first, or use batch_isend_irecv.",
        ),
        incident="inc-deadlock",
    )
    scene.add(job(said, ("node-a",)), tuple(rank(n, "culprit") for n in range(4)))
    scene.incidents.append(incident(said, acknowledged_by="ada"))


def _suspected(scene: Scene) -> None:
    said = verdict(
        "d4e5f6a1b2c3",
        "vit-l",
        model.State.SUSPECTED,
        kind=model.Kind.MISSING_RANKS,
        confidence=0.6,
        stalled_s=11.0,
        summary="Ranks 2-3 are behind in tp-1 all_reduce #512; evidence is being taken.",
        culprit_ranks="2-3",
        waiting="0-1",
    )
    scene.add(
        job(said),
        tuple(rank(n, "culprit" if n in (2, 3) else "healthy") for n in range(8)),
        group("tp-1", "0-3", behind="2-3", waiting="0-1", op="all_reduce", stalled_s=11.0),
    )


def _unknown(scene: Scene) -> None:
    said = verdict(
        "e5f6a1b2c3d4",
        "moe-test",
        model.State.UNKNOWN,
        stalled_s=90.0,
        summary="node-b is silent: 4 ranks are not reporting.",
        coverage=model.Coverage(reporting=4, world_size=8, silent="4-7"),
    )
    rows = tuple(
        rank(n, "silent", link=model.Link.LOST, age_s=90.0) if n > 3 else rank(n) for n in range(8)
    )
    scene.add(job(said, depth=wire.Depth.BARE), rows)


def _large(scene: Scene) -> None:
    said = verdict(
        "f6a1b2c3d4e5",
        "llama-70b",
        model.State.SLOW,
        kind=model.Kind.MISSING_RANKS,
        stalled_s=22.0,
        world_size=512,
        summary="Rank 77 is slower than the rest of dp-3 and makes progress.",
        culprit_ranks="77",
        waiting="0-76,78-511",
        coverage=model.Coverage(reporting=504, world_size=512, silent="480-487"),
    )
    rows = tuple(
        rank(n, "culprit" if n == 77 else "silent" if 480 <= n < 488 else "waiting", per_node=8)
        for n in range(512)
    )
    nodes = tuple(sorted({row.node for row in rows}))
    scene.add(job(said, nodes), rows, *(group(f"dp-{n}", f"{n}-{504 + n}:8") for n in range(8)))


def _healthy(scene: Scene) -> None:
    said = verdict("0a1b2c3d4e5f", "bert-base", model.State.HEALTHY)
    scene.add(job(said), tuple(rank(n) for n in range(8)), group("world", "0-7"))
    wait = verdict(
        "1a2b3c4d5e6f",
        "sft-13b",
        model.State.EXPECTED_WAIT,
        stalled_s=123.0,
        summary="Rank 0 writes a checkpoint, 7 ranks wait at a barrier (limit 15 min).",
    )
    scene.add(job(wait, attempt=2), tuple(rank(n, "waiting") for n in range(8)))


def _hostile(scene: Scene) -> None:
    said = verdict(
        "2a3b4c5d6e7f",
        HOSTILE,
        model.State.HUNG,
        kind=model.Kind.MISSING_RANKS,
        stalled_s=20.0,
        summary=f"Rank 1 of {HOSTILE[:200]} never came.",
        culprit_ranks="1",
        waiting="0,2-7",
        culprits=(
            model.Culprit(
                rank=1,
                node='<img src=x onerror="alert(1)">',
                pid=801,
                gpu=None,
                condition=model.Condition.UNKNOWN,
                where=HOSTILE,
            ),
        ),
        hints=(HOSTILE,),
        incident="inc-hostile",
    )
    scene.add(
        job(said),
        tuple(rank(n, "culprit" if n == 1 else "waiting", waits_in=HOSTILE) for n in range(8)),
        group(HOSTILE, "0-7", behind="1", waiting="0", op=HOSTILE),
    )
    scene.incidents.append(incident(said))


def _others(scene: Scene) -> None:
    for number, state in enumerate(
        (model.State.FINISHED, model.State.FAILED, model.State.STARTING)
    ):
        said = verdict(f"3a4b5c6d7e{number:02d}", f"sweep-{number}", state)
        if state is model.State.FAILED:
            said = verdict(
                said.job,
                said.name,
                state,
                summary="Rank 3 ended with an uncaught RuntimeError.",
                stalled_s=300.0,
            )
        scene.add(
            job(said, is_live=state is model.State.STARTING, progress_age_s=None),
            tuple(rank(n, "finished") for n in range(4)),
        )
    over = verdict(
        "0a1b2c3d4e5f",
        "bert-base",
        model.State.HUNG,
        kind=model.Kind.STALLED_COLLECTIVE,
        op="all_gather",
        seq=311,
        summary="All ranks entered all_gather #311 and none finishes.",
        waiting="0-7",
        incident="inc-over",
    )
    scene.incidents.append(
        incident(
            over,
            state=model.IncidentState.RESOLVED,
            opened_at=NOW - timedelta(days=2),
            ended_at=NOW - timedelta(days=2),
            end_reason="progress",
        )
    )


def _node(name: str, **changes: object) -> model.NodeRow:
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


def _silent_node() -> model.NodeRow:
    return _node("node-f", link=model.Link.LOST, age_s=92.0, jobs=())


def _blind_node() -> model.NodeRow:
    return _node(
        "node-g",
        stacks="py-spy may not read other processes here",
        stacks_remedy="sudo sysctl kernel.yama.ptrace_scope=0",
    )
