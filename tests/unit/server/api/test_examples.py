"""Examples of the OpenAPI document are true to the models, field by field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from hangwatch_server import model
from hangwatch_server.api import (
    channels,
    documents,
    examples,
    health,
)
from hangwatch_server.db import audit
from hangwatch_server.model import alerts
from hangwatch_server.model.alerts import Channel

CASES: list[tuple[Any, Any]] = [
    (model.Verdict, examples.VERDICT),
    (model.Job, examples.JOB),
    (Channel, examples.CHANNEL),
    (channels.KindRow, examples.CHANNEL_KIND),
    (channels.Trial, examples.CHANNEL_TRIAL),
    (model.RankRow, examples.RANK),
    (model.GroupRow, examples.GROUP),
    (model.TimelinePoint, examples.TIMELINE_POINT),
    (model.Mesh, examples.MESH),
    (model.Lag, examples.LAG),
    (model.DepthRow, examples.DEPTH),
    (model.Hold, examples.HOLD),
    (model.Capture, examples.CAPTURE),
    (documents.Tree, examples.TREE),
    (model.Comparison, examples.COMPARISON),
    (model.Incident, examples.INCIDENT),
    (model.Moment, examples.MOMENT),
    (model.NodeRow, examples.NODE),
    (documents.TokenRow, examples.TOKEN),
    (documents.NewToken, examples.NEW_TOKEN),
    (audit.AuditRow, examples.AUDIT),
    (alerts.Silence, examples.SILENCE),
    (alerts.DeliverySummary, examples.DELIVERY_SUMMARY),
    (alerts.Delivery, examples.DELIVERY),
    (alerts.Message, examples.DELIVERY["message"]),
    (health.Health, examples.HEALTH),
    (health.Readiness, examples.READINESS),
]


@pytest.mark.parametrize(
    ("kind", "example"), CASES, ids=lambda value: getattr(value, "__name__", "")
)
def test_an_example_has_exactly_the_fields_of_its_model(kind: Any, example: Any) -> None:
    schema = TypeAdapter(kind).json_schema(mode="serialization")

    assert set(schema["properties"]) == set(example)


def test_the_step_of_a_path_says_for() -> None:
    step = model.PathStep(rank=0, waits_in="dp all_reduce #1", for_=(1,))

    written = TypeAdapter(model.PathStep).dump_python(step, by_alias=True)

    assert written == examples.PATH[0] | {"waits_in": step.waits_in, "for": (1,)}
