"""Hand-made jobs, incidents and captures: each state that a page must show well.

Plain model objects, no server: what Hangwatch really says of a real job is tested elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from tests.web import making, moments, stack_scenes

from hangwatch_agent import wire
from hangwatch_server import model

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
    comparisons: dict[tuple[str, str], model.Comparison] = field(default_factory=dict)
    waited_for: dict[str, dict[str, str]] = field(default_factory=dict)
    nodes: list[model.NodeRow] = field(default_factory=list)
    moments: dict[str, model.Moment] = field(default_factory=moments.by_incident)
    is_without_alerts: bool = False  # no channel, no message, no silence

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
    stack_scenes.add(scene.captures, scene.trees, scene.comparisons, scene.waited_for)
    scene.nodes = [
        making.node("node-a"),
        making.node("node-b", incidents=3),
        making.silent_node(),
        making.blind_node(),
    ]
    return scene


def _hung(scene: Scene) -> None:
    said = making.verdict(
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
        making.rank(
            number,
            "culprit" if number == 5 else "waiting",
            condition=model.Condition.IN_DATALOADER if number == 5 else None,
            where="train.py:88 in __getitem__" if number == 5 else "",
        )
        for number in range(8)
    )
    behind = making.group(
        "dp-1",
        "1,3,5,7",
        op="all_reduce [26 MB float]",
        behind="5",
        waiting="1,3,7",
        stalled_s=252.0,
    )
    scene.add(
        making.job(said),
        rows,
        behind,
        making.group(
            "tp-0", "0,1", at=9311, op="all_reduce [4 MB float]", waiting="0", stalled_s=251.0
        ),
        making.group("world", "0-7", at=88),
    )
    scene.incidents.append(making.incident(said, captures=("cap-hung",)))
    scene.captures["cap-hung"] = making.capture("cap-hung", said.job, "0-7", incident="inc-hung")
    scene.trees["cap-hung"] = making.tree("cap-hung", "5", "0-4,6-7")
    missing = (
        making.part(6, "py-spy may not read the process", "sudo sysctl kernel.yama.ptrace_scope=0"),
        making.part(7, "node-b did not answer within 15 s"),
    )
    scene.captures["cap-taking"] = making.capture(
        "cap-taking",
        said.job,
        "0-7",
        state=model.CaptureState.TAKING,
        requested_by="ada",
        parts=(*(making.part(number) for number in range(6)), *missing),
    )
    scene.trees["cap-taking"] = making.tree("cap-taking", "5", "0-4", missing)


def _mismatch(scene: Scene) -> None:
    said = making.verdict(
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
        making.job(said, ("node-a",)),
        tuple(making.rank(n, "culprit", condition=model.Condition.IN_COLLECTIVE) for n in range(2)),
        making.group("world", "0-1", at=29, op="all_reduce", waiting="0-1", stalled_s=61.0),
    )
    scene.incidents.append(making.incident(said))


def _deadlock(scene: Scene) -> None:
    steps = tuple(
        model.PathStep(
            rank=number,
            waits_in=f"pp-{number} recv from {(number + 1) % 4}",
            for_=((number + 1) % 4,),
        )
        for number in range(4)
    )
    said = making.verdict(
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
    scene.add(making.job(said, ("node-a",)), tuple(making.rank(n, "culprit") for n in range(4)))
    scene.incidents.append(making.incident(said, acknowledged_by="ada"))


def _suspected(scene: Scene) -> None:
    said = making.verdict(
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
        making.job(said),
        tuple(making.rank(n, "culprit" if n in (2, 3) else "healthy") for n in range(8)),
        making.group("tp-1", "0-3", behind="2-3", waiting="0-1", op="all_reduce", stalled_s=11.0),
    )


def _unknown(scene: Scene) -> None:
    said = making.verdict(
        "e5f6a1b2c3d4",
        "moe-test",
        model.State.UNKNOWN,
        stalled_s=90.0,
        summary="node-b is silent: 4 ranks are not reporting.",
        coverage=model.Coverage(reporting=4, world_size=8, silent="4-7"),
    )
    rows = tuple(
        making.rank(n, "silent", link=model.Link.LOST, age_s=90.0) if n > 3 else making.rank(n)
        for n in range(8)
    )
    scene.add(making.job(said, depth=wire.Depth.BARE), rows)


def _large(scene: Scene) -> None:
    said = making.verdict(
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
        making.rank(
            n, "culprit" if n == 77 else "silent" if 480 <= n < 488 else "waiting", per_node=8
        )
        for n in range(512)
    )
    nodes = tuple(sorted({row.node for row in rows}))
    scene.add(
        making.job(said, nodes),
        rows,
        *(making.group(f"dp-{n}", f"{n}-{504 + n}:8") for n in range(8)),
    )


def _healthy(scene: Scene) -> None:
    said = making.verdict("0a1b2c3d4e5f", "bert-base", model.State.HEALTHY)
    scene.add(
        making.job(said), tuple(making.rank(n) for n in range(8)), making.group("world", "0-7")
    )
    wait = making.verdict(
        "1a2b3c4d5e6f",
        "sft-13b",
        model.State.EXPECTED_WAIT,
        stalled_s=123.0,
        summary="Rank 0 writes a checkpoint, 7 ranks wait at a barrier (limit 15 min).",
    )
    scene.add(making.job(wait, attempt=2), tuple(making.rank(n, "waiting") for n in range(8)))


def _hostile(scene: Scene) -> None:
    said = making.verdict(
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
        making.job(said),
        tuple(
            making.rank(n, "culprit" if n == 1 else "waiting", waits_in=HOSTILE) for n in range(8)
        ),
        making.group(HOSTILE, "0-7", behind="1", waiting="0", op=HOSTILE),
    )
    scene.incidents.append(making.incident(said))


def _others(scene: Scene) -> None:
    for number, state in enumerate(
        (model.State.FINISHED, model.State.FAILED, model.State.STARTING)
    ):
        said = making.verdict(f"3a4b5c6d7e{number:02d}", f"sweep-{number}", state)
        if state is model.State.FAILED:
            said = making.verdict(
                said.job,
                said.name,
                state,
                summary="Rank 3 ended with an uncaught RuntimeError.",
                stalled_s=300.0,
            )
        scene.add(
            making.job(said, is_live=state is model.State.STARTING, progress_age_s=None),
            tuple(making.rank(n, "finished") for n in range(4)),
        )
    over = making.verdict(
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
        making.incident(
            over,
            state=model.IncidentState.RESOLVED,
            opened_at=making.NOW - timedelta(days=2),
            ended_at=making.NOW - timedelta(days=2),
            end_reason="progress",
        )
    )
