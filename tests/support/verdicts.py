"""Verdicts, jobs and captures for tests that store them: complete, small and real in shape."""

from __future__ import annotations

from datetime import UTC, datetime

from hangwatch_agent import wire
from hangwatch_server import model

SINCE = datetime(2026, 11, 20, 18, 0, 3, tzinfo=UTC)


def verdict(
    job: str = "b3a1c2d4e5f6",
    *,
    state: model.State = model.State.HUNG,
    kind: model.Kind = model.Kind.MISSING_RANKS,
    attempt: int = 1,
    culprits: tuple[int, ...] = (5,),
    node: str = "node-b",
    waiting: str = "0-4,6-7",
    reporting: int = 8,
    summary: str = "Rank 5 never entered all_reduce #29 of group dp-1.",
) -> model.Verdict:
    ranks = ",".join(str(rank) for rank in culprits)
    return model.Verdict(
        job=job,
        name="gpt-7b",
        attempt=attempt,
        index=0,
        state=state,
        kind=kind,
        confidence=0.94,
        since=SINCE,
        stalled_s=12.4,
        summary=summary,
        group=model.GroupRef(id="aa11bb22cc33", name="dp-1", ranks="1,3,5,7"),
        seq=29,
        op="all_reduce",
        culprits=tuple(
            model.Culprit(
                rank=rank,
                node=node,
                pid=812,
                gpu=None,
                condition=model.Condition.IN_DATALOADER,
                where="train.py:88 in __getitem__",
            )
            for rank in culprits
        ),
        culprit_ranks=ranks,
        waiting=waiting,
        path=(model.PathStep(rank=0, waits_in="tp-0 all_reduce #29", for_=(1,)),),
        edges=(model.WaitEdge(ranks=waiting, call="dp-1 all_reduce #29", missing=ranks),),
        cycle=(),
        sides=(),
        evidence=(model.Evidence(kind="counters", text="7 of 8 ranks entered #29"),),
        hints=("Look at the dataset of rank 5.",),
        coverage=model.Coverage(reporting=reporting, world_size=8, silent=""),
        action=model.Action(advice="investigate"),
        limits=model.Limits(suspect_after_s=10, confirm_after_s=15, why="floors"),
    )


def job(
    id: str = "b3a1c2d4e5f6",
    *,
    name: str = "gpt-7b",
    attempt: int = 1,
    state: model.State = model.State.HEALTHY,
    first_seen: datetime = SINCE,
) -> model.Job:
    return model.Job(
        id=id,
        name=name,
        attempt=attempt,
        world_size=8,
        reporting=8,
        state=state,
        verdict=verdict(id, state=state, kind=model.Kind.NONE, culprits=(), waiting=""),
        nodes=("node-a", "node-b"),
        depth=wire.Depth.PROBE,
        first_seen=first_seen,
        last_seen=first_seen,
        progress_age_s=0.2,
        script="train.py",
        step=120,
    )


def capture(id: str, of: str = "b3a1c2d4e5f6", *, incident: str | None = None) -> model.Capture:
    return model.Capture(
        id=id,
        job=of,
        attempt=1,
        incident=incident,
        state=model.CaptureState.TAKING,
        requested_at=SINCE,
        requested_by="ops",
        ranks="5",
        kinds=("stacks",),
        native=False,
    )


def part(capture: str, rank: int = 5, *, function: str = "__getitem__") -> wire.CapturePart:
    frame = wire.Frame(name=function, file="train.py", line=88)
    thread = wire.Thread(pid=812, thread_id=812, name="MainThread", frames=(frame,))
    return wire.CapturePart(
        capture=capture,
        launch="run-1",
        rank=rank,
        pid=812,
        age_s=0.1,
        stacks=(wire.ProcessStacks(pid=812, role="main", threads=(thread,)),),
        process=wire.ProcessFacts(state="S"),
        sources=(wire.Source(file="/ada/train.py", line=88, first=88, lines=("x = open(path)",)),),
    )


def empty_part(capture: str, rank: int = 5) -> wire.CapturePart:
    return wire.CapturePart(
        capture=capture,
        launch="run-1",
        rank=rank,
        pid=812,
        age_s=0.0,
        reason="its agent did not answer within 15 s",
        remedy="look at the agent's log",
    )
