"""The way from any waiting rank to a culprit, by what a stored verdict keeps."""

from __future__ import annotations

import dataclasses

from tests.support import verdicts as make

from hangwatch_server import model
from hangwatch_server.incidents import ways

EDGES = (
    model.WaitEdge(ranks="1,3,7", call="dp-1 all_reduce #29", missing="5"),
    model.WaitEdge(ranks="0,2,6", call="tp all_reduce #9", missing="1,3,7"),
)
STORED = (
    model.PathStep(rank=0, waits_in="tp all_reduce #9", for_=(1,)),
    model.PathStep(rank=1, waits_in="dp-1 all_reduce #29", for_=(5,)),
    model.PathStep(rank=5, waits_in="is in its dataloader", for_=()),
)


def _verdict(**changes: object) -> model.Verdict:
    said = dataclasses.replace(make.verdict(), edges=EDGES, path=STORED)
    return dataclasses.replace(said, **changes)  # type: ignore[arg-type]


def test_a_rank_on_the_stored_way_goes_on_from_there() -> None:
    assert ways.way(_verdict(), 1) == STORED[1:]


def test_another_rank_comes_to_the_stored_way_by_the_edges() -> None:
    found = ways.way(_verdict(), 6)

    assert [step.rank for step in found] == [6, 1, 5]
    assert found[0].waits_in == "tp all_reduce #9"


def test_without_a_stored_way_the_edges_lead_to_what_the_culprit_does() -> None:
    found = ways.way(_verdict(path=()), 2)

    assert [step.rank for step in found] == [2, 1, 5]
    assert found[-1].waits_in.startswith("is in its dataloader: train.py:88")
    assert found[-1].for_ == ()


def test_a_rank_that_no_edge_tells_of_has_no_way() -> None:
    assert ways.way(_verdict(), 4) == ()


def test_a_culprit_is_its_own_way() -> None:
    (step,) = ways.way(_verdict(path=()), 5)

    assert step.rank == 5


def test_a_rank_outside_a_cycle_leads_into_it_and_a_rank_of_it_around() -> None:
    cycle = (
        model.PathStep(rank=0, waits_in="a #1", for_=(1,)),
        model.PathStep(rank=1, waits_in="b #1", for_=(0,)),
    )
    edges = (model.WaitEdge(ranks="2", call="c #1", missing="1"),)
    said = _verdict(cycle=cycle, path=(), edges=edges, culprits=(), culprit_ranks="0-1")

    assert [step.rank for step in ways.way(said, 2)] == [2, 1, 0]
    assert [step.rank for step in ways.way(said, 1)] == [1, 0]


def test_edges_in_a_circle_end() -> None:
    edges = (
        model.WaitEdge(ranks="0", call="a", missing="1"),
        model.WaitEdge(ranks="1", call="b", missing="0"),
    )

    found = ways.way(_verdict(path=(), edges=edges, culprit_ranks="", culprits=()), 0)

    assert [step.rank for step in found] == [0, 1]
