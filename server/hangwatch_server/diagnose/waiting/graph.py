"""Plain directed graphs over small integers: strongly connected components, sinks, reverse reach.

Knows nothing of ranks or collectives. Iterative, because a pipeline's wait chain can be longer than
Python's recursion limit. Tarjan, "Depth-first search and linear graph algorithms" (1972).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Successors = Sequence[Sequence[int]]


def components(successors: Successors) -> list[list[int]]:
    """Strongly connected components, successors before predecessors, members ascending."""
    size = len(successors)
    index = [-1] * size
    low = [0] * size
    on_stack = bytearray(size)
    stack: list[int] = []
    found: list[list[int]] = []
    counter = 0
    for root in range(size):
        if index[root] >= 0:
            continue
        work = [(root, iter(successors[root]))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on_stack[root] = 1
        while work:
            node, rest = work[-1]
            for child in rest:
                if index[child] < 0:
                    index[child] = low[child] = counter
                    counter += 1
                    stack.append(child)
                    on_stack[child] = 1
                    work.append((child, iter(successors[child])))
                    break
                if on_stack[child] and index[child] < low[node]:
                    low[node] = index[child]
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == index[node]:
                    found.append(_pop_component(stack, on_stack, node))
    return found


def sinks(successors: Successors, predecessors: Successors | None = None) -> list[list[int]]:
    """Components that no edge leaves.

    Most are single nodes without a way out. What leads to one of those is in no other sink, so the
    search for components is left with the rest, which is mostly nothing.
    """
    ends = [node for node, children in enumerate(successors) if not children]
    before = reach(reverse(successors) if predecessors is None else predecessors, ends)
    rest = [node for node in range(len(successors)) if node not in before]
    closed = _closed(_inside(successors, rest))
    return sorted([*([node] for node in ends), *([rest[n] for n in members] for members in closed)])


def cycles(successors: Successors, predecessors: Successors | None = None) -> list[list[int]]:
    """Components of several nodes, successors before predecessors.

    Nodes that lead to no cycle are peeled off first, which mostly leaves nothing to search.
    """
    before = reverse(successors) if predecessors is None else predecessors
    ways_on = [len(children) for children in successors]
    peeled = [node for node, number in enumerate(ways_on) if number == 0]
    for node in peeled:  # grows as more nodes are left without a way on
        for parent in before[node]:
            ways_on[parent] -= 1
            if ways_on[parent] == 0:
                peeled.append(parent)
    rest = [node for node, number in enumerate(ways_on) if number > 0]
    found = components(_inside(successors, rest))
    return [[rest[number] for number in members] for members in found if len(members) > 1]


def _inside(successors: Successors, nodes: list[int]) -> list[list[int]]:
    """The graph of these nodes alone, numbered by their places in the list."""
    place = {node: number for number, node in enumerate(nodes)}
    return [[place[child] for child in successors[node] if child in place] for node in nodes]


def _closed(successors: Successors) -> list[list[int]]:
    found = components(successors)
    owner = [0] * len(successors)
    for number, members in enumerate(found):
        for node in members:
            owner[node] = number
    return [
        members
        for number, members in enumerate(found)
        if all(owner[child] == number for node in members for child in successors[node])
    ]


def reverse(successors: Successors) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in successors]
    for node, children in enumerate(successors):
        for child in children:
            predecessors[child].append(node)
    return predecessors


def reach(neighbours: Successors, starts: Iterable[int]) -> set[int]:
    """Every node reachable from `starts`, themselves included."""
    seen: set[int] = set()
    grow(neighbours, seen, starts)
    return seen


def grow(neighbours: Successors, seen: set[int], starts: Iterable[int]) -> None:
    """Add what is reachable from `starts`; all that `seen` leads to must be in it already."""
    stack = list(set(starts) - seen)
    seen.update(stack)
    while stack:
        for node in neighbours[stack.pop()]:
            if node not in seen:
                seen.add(node)
                stack.append(node)


def shortest_path(successors: Successors, start: int, goals: frozenset[int]) -> list[int]:
    """Nodes from `start` to the nearest of `goals`, both included; empty when none is reachable.

    A `start` that is itself a goal gives the shortest way round back to any goal, for cycles.
    """
    parents: dict[int, int] = {}
    layer = [start]
    while layer:
        following: list[int] = []
        for node in layer:
            for child in successors[node]:
                if child in goals:
                    return [*_trail(parents, start, node), child]
                if child not in parents and child != start:
                    parents[child] = node
                    following.append(child)
        layer = following
    return []


def _trail(parents: dict[int, int], start: int, node: int) -> list[int]:
    trail = [node]
    while trail[-1] != start:
        trail.append(parents[trail[-1]])
    return trail[::-1]


def _pop_component(stack: list[int], on_stack: bytearray, root: int) -> list[int]:
    members: list[int] = []
    while True:
        node = stack.pop()
        on_stack[node] = 0
        members.append(node)
        if node == root:
            return sorted(members)
