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


def of_tree(tree: Tree) -> tuple[Segment, ...]:
    """The blocks of a tree, the smallest set of ranks first: the odd one is the interesting one.

    Ranks come before their children, whose named roots stand for no frame.
    """
    ranks = [root for root in tree.roots if root.file]
    children = [root for root in tree.roots if not root.file]
    return _segments(ranks) + _segments(children)


def stack_of(tree: Tree, rank: int) -> tuple[tuple[StackLine, ...], StackClass | None]:
    """The innermost frames of one rank's main thread, as its class has them."""
    for group in tree.classes:
        if rank in ranges.parse(group.ranks):
            framework = {
                (node.name, node.file, node.line) for node in _walk(tree.roots) if node.is_framework
            }
            return tuple(_line(frame, framework) for frame in group.frames[:CONTEXT_FRAMES]), group
    return (), None


def _segments(nodes: Iterable[TreeNode]) -> tuple[Segment, ...]:
    return tuple(
        _segment(node) for node in sorted(nodes, key=lambda node: (node.count, node.ranks))
    )


def _segment(node: TreeNode) -> Segment:
    frames = [node]
    while len(node.children) == 1 and node.children[0].ranks == node.ranks:
        node = node.children[0]
        frames.append(node)
    return Segment(
        ranks=node.ranks,
        count=node.count,
        frames=tuple(frames),
        is_frozen=node.is_frozen,
        children=_segments(node.children),
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
