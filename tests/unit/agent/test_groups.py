"""What a rank says of its groups: each once, within limits, and at a bounded cost."""

from __future__ import annotations

import pytest

from hangwatch_agent import groups, ranges, wire
from hangwatch_agent.groups import Groups
from hangwatch_agent.payload import GroupPayload

SECOND = 1_000_000_000


def told(*specs: str) -> list[GroupPayload]:
    return [GroupPayload(name=str(number), ranks=spec) for number, spec in enumerate(specs)]


def test_group_that_is_told_very_often_travels_once() -> None:
    many = [GroupPayload(name="g", ranks="0-1")] * 5000

    described = Groups("k").describe(many, 0)

    assert len(described.pairs) == len(described.gids) == 1
    assert described.lacks == ("4999 of 5000 groups are left out: too many, twice, or unreadable",)


def test_more_groups_than_a_rank_may_have_are_cut() -> None:
    described = Groups("k").describe(told(*["0-1"] * 5000), 0)

    assert len(described.pairs) == wire.MAX_GROUPS_PER_RANK


def test_names_that_differ_beyond_what_travels_are_one_group() -> None:
    long = [GroupPayload(name="n" * 200 + end, ranks="0-1") for end in "ab"]

    assert len(Groups("k").describe(long, 0).pairs) == 1


def test_ranks_that_no_world_has_are_never_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    monkeypatch.setattr(ranges, "sorted_text", lambda spec: listed.append(spec))

    described = Groups("k").describe(told("0-998000", f"0-{wire.MAX_WORLD_SIZE}"), 0)

    assert described.pairs == ()
    assert listed == []


def steps_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of every text that is worked out from now on."""
    taken: list[int] = []
    whole = ranges.sorted_text

    def counted(spec: str) -> str | None:
        size = ranges.measured(spec)
        taken.append(size.steps if size else 0)
        return whole(spec)

    monkeypatch.setattr(ranges, "sorted_text", counted)
    return taken


def test_groups_that_change_with_every_beat_are_rationed(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = steps_taken(monkeypatch)
    one = Groups("k")

    for beat in range(100):
        one.describe(told(*(f"0-9000:3,1-{9000 + beat}:3" for _ in range(8))), beat * SECOND)

    assert sum(taken) <= groups.ALLOWANCE + 100 * groups.ALLOWANCE_PER_S


def test_what_the_ration_does_not_reach_for_comes_with_later_beats() -> None:
    many = told(*(f"0-{60_000 - 3 * number}:3,100001-160000:3" for number in range(4)))
    one = Groups("k")

    first = len(one.describe(many, 0).pairs)
    last = one.describe(many, 120 * SECOND)
    for beat in range(121, 160):
        last = one.describe(many, beat * SECOND)

    assert first < 4
    assert (len(last.pairs), last.lacks) == (4, ())


def test_groups_that_stay_the_same_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = steps_taken(monkeypatch)
    one = Groups("k")

    infos = [
        one.describe([GroupPayload(name="0", ranks="0-7", counter=beat)], beat * SECOND).infos
        for beat in range(5)
    ]

    assert len(taken) == 1
    assert all(info == infos[0] for info in infos)


def test_texts_longer_than_any_record_do_not_travel() -> None:
    strides = [f"{number}-50000:2,{number}-50000:3" for number in range(20)]
    one = Groups("k")

    for beat in range(400):
        described = one.describe(told(*strides), beat * SECOND)

    assert sum(len(info.ranks) for info in described.infos) <= groups.MAX_CHARACTERS
