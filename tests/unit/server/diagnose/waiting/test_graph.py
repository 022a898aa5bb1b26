"""Components, sinks, reach and shortest paths of plain graphs."""

from __future__ import annotations

from hangwatch_server.diagnose.waiting import graph


def test_cycle_is_one_component() -> None:
    assert [0, 1, 2] in graph.components([[1], [2], [0], [0]])


def test_only_components_without_a_way_out_are_sinks() -> None:
    assert graph.sinks([[1], [2], [1], [3], []]) == [[1, 2], [3], [4]]


def test_chain_longer_than_the_recursion_limit_is_walked() -> None:
    chain = [[node + 1] for node in range(20_000)] + [[]]

    assert graph.sinks(chain) == [[20_000]]
    assert len(graph.reach(graph.reverse(chain), [20_000])) == 20_001


def test_shortest_path_from_a_goal_goes_round_its_cycle() -> None:
    assert graph.shortest_path([[1], [2], [0, 3], []], 0, frozenset({0})) == [0, 1, 2, 0]
    assert graph.shortest_path([[1], []], 1, frozenset({0})) == []


def test_what_is_reached_already_is_not_walked_again() -> None:
    class Walked(list[list[int]]):
        def __getitem__(self, node: int) -> list[int]:  # type: ignore[override]
            walked.append(node)
            return super().__getitem__(node)

    walked: list[int] = []
    seen = {1, 2}

    graph.grow(Walked([[1], [2], []]), seen, [0])

    assert seen == {0, 1, 2}
    assert walked == [0]
