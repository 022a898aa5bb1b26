"""Who is further on, by the lines of two stacks."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, RankView


def frames(*places: tuple[str, int]) -> tuple[wire.Frame, ...]:
    return tuple(wire.Frame(name=name, file="train.py", line=line) for name, line in places)


def view(rank: int, op: str, *places: tuple[str, int]) -> RankView:
    name, line = places[-1]
    stack = make.stack(
        Activity.COLLECTIVE, f"train.py:{line} in {name}", op=op, user_path=frames(*places)
    )
    return make.rank(rank, make.at("world", 5, 6, op=op), stack=stack)


def said(odd: RankView, *others: RankView) -> str:
    group = make.world(odd.rank, *(one.rank for one in others))
    found = diagnose(make.snapshot([odd, *others], [group]))[0]
    return " ".join(item.text for item in found.evidence)


def test_rank_on_a_later_line_seems_to_have_skipped_the_call_of_the_others() -> None:
    others = [view(rank, "all_gather", ("main", 47), ("evaluate", 26)) for rank in (0, 2)]

    text = said(view(1, "barrier", ("main", 48)), *others)

    assert "Rank 1 is at train.py:48 in main and the others are at train.py:26 in evaluate" in text
    assert "it seems to have skipped one all_gather." in text


def test_rank_on_an_earlier_line_seems_to_be_in_an_extra_call() -> None:
    others = [view(rank, "barrier", ("main", 48)) for rank in (0, 2)]

    text = said(view(1, "all_reduce", ("main", 47), ("step", 9)), *others)

    assert "it seems to be in one extra all_reduce." in text


@pytest.mark.parametrize("places", [(("main", 47),), (("main", 47), ("other", 90))])
def test_stacks_that_do_not_part_within_a_function_say_nothing(
    places: tuple[tuple[str, int], ...],
) -> None:
    others = [view(rank, "all_gather", ("main", 47), ("evaluate", 26)) for rank in (0, 2)]

    assert "seems" not in said(view(1, "barrier", *places), *others)
