"""The differing calls side by side: which parts differ."""

from __future__ import annotations

from hangwatch_server import model
from hangwatch_server.pages import sides


def _side(ranks: str, call: str) -> model.MismatchSide:
    return model.MismatchSide(ranks=ranks, call=call, where="", is_odd=False)


def test_only_what_differs_is_marked() -> None:
    left, right = sides.of(
        [_side("0-6", "all_reduce [1024] float"), _side("7", "all_reduce [512] float")]
    )

    assert [(part.name, part.text, part.differs) for part in right.parts] == [
        ("call", "all_reduce", False),
        ("sizes", "[512]", True),
        ("type", "float", False),
    ]
    assert (left.count, right.count) == (7, 1)


def test_a_call_without_tensors_has_neither_sizes_nor_type() -> None:
    _, barrier = sides.of([_side("0", "all_gather [4], [8] int"), _side("1", "barrier")])

    assert [(part.text, part.differs) for part in barrier.parts] == [
        ("barrier", True),
        ("", True),
        ("", True),
    ]
