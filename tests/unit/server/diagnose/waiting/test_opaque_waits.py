"""A main thread in the wait() of an asynchronous call looks like one that waits for a lock."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Condition, Kind


def test_rank_inside_the_wait_of_its_own_call_is_no_culprit() -> None:
    waiting = make.stack(Activity.USER_CODE, "train.py:62 in step", is_opaque=True)
    views = [
        make.rank(0, make.at("world", 8, 9), stack=waiting),
        make.rank(1, make.at("world", 8, 9), stack=waiting),
        make.rank(2, make.at("world", 8), stack=make.stack(Activity.DATALOADER)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]

    assert (found.kind, found.culprit_ranks, found.waiting) == (Kind.MISSING_RANKS, "2", "0-1")


def test_rank_that_owes_a_call_and_waits_opaquely_is_one() -> None:
    lock = make.stack(Activity.USER_CODE, "train.py:75 in flush", is_opaque=True)
    views = [
        make.rank(0, make.at("world", 8, 9)),
        make.rank(1, make.at("world", 8), stack=lock),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert (found.culprit_ranks, found.culprits[0].where) == ("1", "train.py:75 in flush")


def test_rank_that_waits_for_its_gpu_says_so_when_it_is_late() -> None:
    item = make.stack(Activity.GPU, "train.py:70 in log_loss")
    views = [
        make.rank(0, make.at("world", 8, 9)),
        make.rank(1, make.at("world", 8), stack=item),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.culprits[0].condition is Condition.GPU_BUSY
    assert found.culprits[0].detail == "it waits for work on its GPU"
