"""Messages and incidents for tests of alerts, and requests that may go to this machine."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hangwatch_server import model
from hangwatch_server.alerts.guard import Guard, read_allowed
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import Message, Topic

OPENED = datetime(2026, 11, 20, 18, 0, 3, tzinfo=UTC)
URL = "https://hangwatch.example/incidents/1f2e3d4c5b6a"
STACK = (
    "train.py:88 in __getitem__",
    "torch/utils/data/_utils/fetch.py:54 in fetch",
    "train.py:141 in train",
)


@contextlib.asynccontextmanager
async def outgoing(
    allow: str = "127.0.0.0/8", services: frozenset[str] = frozenset()
) -> AsyncIterator[Outgoing]:
    found = Outgoing(Guard(read_allowed(allow)), services=services)
    try:
        yield found
    finally:
        await found.close()


def verdict(**changes: object) -> model.Verdict:
    found = model.Verdict(
        job="b3f1c07a9d24",
        name="gpt-7b",
        attempt=1,
        index=42,
        state=model.State.HUNG,
        kind=model.Kind.MISSING_RANKS,
        confidence=0.94,
        since=OPENED,
        stalled_s=12.4,
        summary="Rank 5 (node-b, pid 812) never entered all_reduce #29 of group dp-1; 7 ranks have "
        "waited 12 s. It is in its dataloader: train.py:88 in __getitem__.",
        group=model.GroupRef(id="5d41402abc4b", name="dp-1", ranks="0-7"),
        seq=29,
        op="all_reduce",
        culprits=(
            model.Culprit(
                rank=5,
                node="node-b",
                pid=812,
                gpu=5,
                condition=model.Condition.IN_DATALOADER,
                where="train.py:88 in __getitem__",
            ),
        ),
        culprit_ranks="5",
        waiting="0-4,6-7",
        path=(
            model.PathStep(rank=0, waits_in="dp-1 all_reduce #29", for_=(5,)),
            model.PathStep(rank=5, waits_in="in its dataloader", for_=()),
        ),
        edges=(),
        cycle=(),
        sides=(),
        evidence=(
            model.Evidence(kind="counters", text="Rank 5 is at #28, 7 ranks are in #29."),
            model.Evidence(kind="stack", text="train.py:88 in __getitem__", capture="c1"),
        ),
        hints=("Look at the storage that rank 5 reads its samples from.",),
        coverage=model.Coverage(reporting=8, world_size=8, silent=""),
        action=model.Action(advice="restart", evidence_stored=True),
        limits=model.Limits(suspect_after_s=10, confirm_after_s=15, why=""),
        incident="1f2e3d4c5b6a",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def incident(**changes: object) -> model.Incident:
    found = model.Incident(
        id="1f2e3d4c5b6a",
        job="b3f1c07a9d24",
        job_name="gpt-7b",
        attempt=1,
        state=model.IncidentState.CONFIRMED,
        kind=model.Kind.MISSING_RANKS,
        summary=verdict().summary,
        culprit_ranks="5",
        culprit_nodes=("node-b",),
        opened_at=OPENED,
        confirmed_at=OPENED + timedelta(seconds=15),
        ended_at=None,
        end_reason="",
        acknowledged_by="",
        acknowledged_at=None,
        snoozed_until=None,
        verdict=verdict(),
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def acknowledged() -> model.Incident:
    at = OPENED + timedelta(seconds=75)
    return incident(acknowledged_by="ada", acknowledged_at=at)


def resolved() -> model.Incident:
    ended = OPENED + timedelta(minutes=4, seconds=12)
    return replace(
        acknowledged(),
        state=model.IncidentState.RESOLVED,
        ended_at=ended,
        end_reason="progress",
    )


def huge_incident() -> model.Incident:
    """All that a job can make long is long."""
    many = tuple(
        model.Culprit(
            rank=number,
            node=f"node-{number}" + "n" * 200,
            pid=number,
            gpu=None,
            condition=model.Condition.IN_USER_CODE,
            where="w" * 900,
        )
        for number in range(64)
    )
    evidence = tuple(model.Evidence(kind="stack", text="e" * 2000) for _ in range(50))
    path = tuple(
        model.PathStep(rank=number, waits_in="g" * 500, for_=(number,)) for number in range(60)
    )
    found = verdict(culprits=many, evidence=evidence, path=path, summary="s" * 5000)
    return incident(verdict=found, job_name="j" * 4000, summary="s" * 5000)


def message(topic: Topic, about: model.Incident | None = None, **changes: object) -> Message:
    found = about or {
        Topic.ACKNOWLEDGED: acknowledged(),
        Topic.RESOLVED: resolved(),
    }.get(topic, incident())
    is_of_incident = topic not in (Topic.SLOW, Topic.BLIND, Topic.SIGHTED, Topic.TEST)
    made = Message(
        id=f"msg_{topic.value}1",
        topic=topic,
        at=OPENED + timedelta(seconds=25),
        about=f"incident:{found.id}" if is_of_incident else "monitor:server",
        title="Rank 5 on node-b is in its dataloader: 7 ranks wait in all_reduce #29",
        text=found.summary,
        url=URL,
        incident=found if is_of_incident else None,
        stack=STACK if is_of_incident else (),
    )
    return replace(made, **changes)  # type: ignore[arg-type]
