"""Collectives that all members have entered: nobody is blamed without evidence."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Condition, Kind

WORLD = [make.world(0, 1, 2, 3)]


def test_error_of_a_members_gpu_names_that_member() -> None:
    broken = wire.GpuFacts(index=2, xid=(79,))
    views = [make.rank(r, make.at("world", 5, 6)) for r in (0, 1, 3)]

    found = diagnose(
        make.snapshot([*views, make.rank(2, make.at("world", 5, 6), gpu=broken)], WORLD)
    )[0]

    assert (found.kind, found.culprit_ranks, found.waiting) == (
        Kind.STALLED_COLLECTIVE,
        "2",
        "0-1,3",
    )
    assert "Xid" in " ".join(item.text for item in found.evidence)
    assert found.confidence >= 0.85
    assert "never entered" not in found.summary


def test_member_that_alone_did_not_finish_is_named_without_certainty() -> None:
    views = [make.rank(r, make.at("world", 6)) for r in (0, 1, 3)]

    found = diagnose(make.snapshot([*views, make.rank(2, make.at("world", 5, 6))], WORLD))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.STALLED_COLLECTIVE, "2")
    assert found.confidence <= 0.6


def test_nobody_is_named_when_as_many_finished_as_did_not() -> None:
    views = [
        make.rank(r, make.at("world", 6 if r < 2 else 5, None if r < 2 else 6)) for r in range(4)
    ]

    found = diagnose(make.snapshot(views, WORLD))[0]

    assert (found.kind, found.culprits) == (Kind.STALLED_COLLECTIVE, ())


def test_early_leavers_of_a_broadcast_speak_against_nobody() -> None:
    views = [make.rank(r, make.at("world", 6, op="broadcast")) for r in (0, 1, 3)]
    last = make.rank(2, make.at("world", 5, 6, op="broadcast"))

    found = diagnose(make.snapshot([*views, last], WORLD))[0]

    assert found.culprits == ()


@pytest.mark.parametrize("facts", [{"state": "D"}, {"state": "S", "is_unresponsive": True}])
def test_member_whose_process_cannot_run_is_named(facts: dict[str, object]) -> None:
    stuck = make.rank(2, make.at("world", 5, 6), facts=make.process(**facts))  # type: ignore[arg-type]
    views = [make.rank(r, make.at("world", 5, 6)) for r in (0, 1, 3)]

    found = diagnose(make.snapshot([*views, stuck], WORLD))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.STALLED_COLLECTIVE, "2")


def test_queued_collective_is_a_busy_gpu_wherever_the_processor_is() -> None:
    groups = [make.group("dp", (0, 1), backend="nccl")]
    views = [
        make.rank(0, make.at("dp", 5, make.entry(6, started=True))),
        make.rank(
            1,
            make.at("dp", 5, make.entry(6, started=False)),
            stack=make.stack(Activity.USER_CODE),
        ),
    ]

    found = diagnose(make.snapshot(views, groups))[0]

    assert [(c.rank, c.condition) for c in found.culprits] == [(1, Condition.GPU_BUSY)]


def test_queued_collective_behind_a_running_one_leads_to_what_that_one_waits_for() -> None:
    """Rank 1's GPU runs tp #3, which rank 2 never entered; dp #6 stands behind it in the queue."""
    groups = [
        make.group("dp", (0, 1), backend="nccl"),
        make.group("tp", (1, 2), backend="nccl"),
    ]
    views = [
        make.rank(0, make.at("dp", 5, make.entry(6, started=True))),
        make.rank(
            1,
            make.at("dp", 5, make.entry(6, started=False)),
            make.at("tp", 2, make.entry(3, started=True)),
        ),
        make.rank(2, make.at("tp", 2), stack=make.stack(Activity.DATALOADER)),
    ]

    found = diagnose(make.snapshot(views, groups))

    assert [(item.kind, item.culprit_ranks, item.waiting) for item in found] == [
        (Kind.MISSING_RANKS, "2", "0-1")
    ]
