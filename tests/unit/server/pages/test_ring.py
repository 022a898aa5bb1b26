"""The cycle as a ring: where dots are, what is folded, and what it says without eyes."""

from __future__ import annotations

import math

from hangwatch_server import model
from hangwatch_server.pages import ring


def _cycle(size: int) -> tuple[model.PathStep, ...]:
    return tuple(
        model.PathStep(rank=rank, waits_in=f"pp-{rank} recv #9", for_=((rank + 1) % size,))
        for rank in range(size)
    )


def test_every_rank_is_a_dot_on_one_circle() -> None:
    drawn = ring.of_cycle(_cycle(3))

    assert drawn is not None
    assert [dot.rank for dot in drawn.dots] == [0, 1, 2]
    for dot in drawn.dots:
        away = math.hypot(dot.x - ring.CENTRE_X, dot.y - ring.CENTRE_Y)
        assert math.isclose(away, ring.RADIUS)
    assert [arc.label for arc in drawn.arcs] == ["pp-0 recv #9", "pp-1 recv #9", "pp-2 recv #9"]


def test_a_single_step_is_no_ring() -> None:
    assert ring.of_cycle(_cycle(1)) is None


def test_a_long_cycle_folds_its_middle_and_says_it_whole() -> None:
    drawn = ring.of_cycle(_cycle(20))

    assert drawn is not None
    assert len(drawn.dots) == ring.MAX_DOTS
    folded = [dot for dot in drawn.dots if dot.folded]
    assert [dot.folded for dot in folded] == [20 - ring.MAX_DOTS + 1]
    assert [dot.rank for dot in drawn.dots if not dot.folded] == [0, 1, 2, 3, 4, 5, *range(15, 20)]
    assert "rank 10 waits in pp-10 recv #9 for rank 11" in drawn.text


def test_a_long_name_is_cut_before_its_number() -> None:
    steps = [
        model.PathStep(rank=rank, waits_in="a-very-long-group-name all_reduce #1042", for_=())
        for rank in range(2)
    ]

    drawn = ring.of_cycle(steps)

    assert drawn is not None
    assert drawn.arcs[0].label.endswith("… #1042")
