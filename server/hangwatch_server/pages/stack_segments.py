"""Folds the merged stack tree for reading: frames that the same ranks share are one block.

Presentation only: ranks, order inside a chain and frozen marks come from the `stacks` room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.model import StackClass, Tree, TreeNode

CONTEXT_FRAMES = 40  # of a culprit's stack on its card; the tree below has them all


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Frames from the outside in that the same ranks pass through, then where they part."""

    ranks: str
    count: int
    frames: tuple[TreeNode, ...]
    is_frozen: bool | None
    children: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackLine:
    """One frame of a culprit's stack as its card shows it."""

    name: str
    file: str
    line: int
    is_framework: bool
    is_native: bool


def of_tree(tree: Tree, culprits: str = "") -> tuple[Segment, ...]:
    """The blocks of a tree: those with culprits first, then the smallest set of ranks, as the odd
    one is the interesting one.

    Ranks come before their children, whose named roots stand for no frame.
    """
    ranks = [root for root in tree.roots if root.file]
    children = [root for root in tree.roots if not root.file]
    wanted = frozenset(ranges.parse(culprits)) if culprits else frozenset()
    return _segments(ranks, wanted) + _segments(children, wanted)


def stack_of(tree: Tree, rank: int) -> tuple[tuple[StackLine, ...], StackClass | None]:
    """The innermost frames of one rank's main thread, as its class has them."""
    for group in tree.classes:
        if rank in ranges.parse(group.ranks):
            framework = {
                (node.name, node.file, node.line) for node in _walk(tree.roots) if node.is_framework
            }
            return tuple(_line(frame, framework) for frame in group.frames[:CONTEXT_FRAMES]), group
    return (), None


def worker_of(tree: Tree, rank: int) -> tuple[StackLine, ...]:
    """The innermost frames of the first loader worker of one rank."""
    for root in tree.roots:
        if not root.file:
            chain = list(_chain_of(root.children, rank))
            if chain:
                return tuple(reversed(chain))[:CONTEXT_FRAMES]
    return ()


def _chain_of(nodes: Sequence[TreeNode], rank: int) -> Iterator[StackLine]:
    for node in nodes:
        if rank in ranges.parse(node.ranks):
            yield StackLine(
                name=node.name,
                file=node.file,
                line=node.line,
                is_framework=node.is_framework,
                is_native=node.is_native,
            )
            yield from _chain_of(node.children, rank)
            return


def _segments(nodes: Iterable[TreeNode], wanted: frozenset[int]) -> tuple[Segment, ...]:
    def place(node: TreeNode) -> tuple[bool, int, str]:
        return wanted.isdisjoint(ranges.parse(node.ranks)), node.count, node.ranks

    return tuple(_segment(node, wanted) for node in sorted(nodes, key=place))


def _segment(node: TreeNode, wanted: frozenset[int]) -> Segment:
    frames = [node]
    while len(node.children) == 1 and node.children[0].ranks == node.ranks:
        node = node.children[0]
        frames.append(node)
    return Segment(
        ranks=node.ranks,
        count=node.count,
        frames=tuple(frames),
        is_frozen=node.is_frozen,
        children=_segments(node.children, wanted),
    )


def _walk(nodes: Sequence[TreeNode]) -> Iterator[TreeNode]:
    for node in nodes:
        yield node
        yield from _walk(node.children)


def _line(frame: wire.Frame, framework: set[tuple[str, str, int]]) -> StackLine:
    return StackLine(
        name=frame.name,
        file=frame.file,
        line=frame.line,
        is_framework=(frame.name, frame.file, frame.line) in framework,
        is_native=frame.is_native,
    )
