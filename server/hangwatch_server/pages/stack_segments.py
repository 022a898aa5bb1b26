"""Folds the merged stack tree for reading: frames that the same ranks share are one block.

Presentation only: ranks, order inside a chain and frozen marks come from the `stacks` room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.model import Activity, Earlier, StackClass, Tree, TreeNode
from hangwatch_server.pages import source_lines
from hangwatch_server.pages.source_lines import SourceLine
from hangwatch_server.stacks import frames as frame_text

CONTEXT_FRAMES = 40  # of a culprit's stack on its card; the tree below has them all


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Frames from the outside in that the same ranks pass through, then where they part."""

    at: str  # its place in the tree, "0.2.1": by this what lies below is asked for
    ranks: str
    count: int
    label: str  # "loader workers" where the block holds children's stacks
    frames: tuple[TreeNode, ...]
    is_frozen: bool | None
    moved: str
    earlier: tuple[Earlier, ...]
    signatures: tuple[str, ...]  # of stacks that end here
    activity: Activity | None  # what they do, None where stacks go on below
    has_culprit: bool
    children: tuple[Segment, ...]
    below: int  # blocks under this one, at any depth


@dataclass(frozen=True, slots=True, kw_only=True)
class StackLine:
    """One frame of a culprit's stack as its card shows it."""

    name: str
    file: str
    line: int
    is_framework: bool
    is_native: bool
    source: tuple[SourceLine, ...] = ()


@dataclass(slots=True)
class _Wanted:
    """What the whole tree is folded for, and range texts that were read already."""

    ranks: frozenset[int]
    activities: Mapping[str, Activity]
    met: dict[str, bool] = field(default_factory=dict)

    def meets(self, text: str) -> bool:
        if not self.ranks:
            return False
        if text not in self.met:
            self.met[text] = not self.ranks.isdisjoint(ranges.parse(text))
        return self.met[text]


def of_tree(tree: Tree, culprits: str = "") -> tuple[Segment, ...]:
    """The blocks of a tree: those with culprits first, then the smallest set of ranks, as the odd
    one is the interesting one.

    Ranks come before their children, whose named roots stand for no frame.
    """
    wanted = _Wanted(
        frozenset(ranges.parse(culprits)) if culprits else frozenset(),
        {group.signature: group.activity for group in tree.classes},
    )
    ordered = [
        *_ordered((root for root in tree.roots if root.file or root.is_native), wanted),
        *_ordered((root for root in tree.roots if not root.file and not root.is_native), wanted),
    ]
    return tuple(_segment(node, wanted, str(index)) for index, node in enumerate(ordered))


def stack_of(tree: Tree, rank: int) -> tuple[tuple[StackLine, ...], StackClass | None]:
    """The innermost frames of one rank's main thread, as its class has them."""
    for group in tree.classes:
        if ranges.holds(group.ranks, rank):
            lines = [_line(frame) for frame in group.frames[:CONTEXT_FRAMES]]
            return _with_source(lines, tree), group
    return (), None


def worker_of(tree: Tree, rank: int) -> tuple[StackLine, ...]:
    """The innermost frames of the first loader worker of one rank."""
    for root in tree.roots:
        if not root.file:
            chain = list(_chain_of(root.children, rank))
            if chain:
                return _with_source(chain[::-1][:CONTEXT_FRAMES], tree)
    return ()


def _with_source(lines: Sequence[StackLine], tree: Tree) -> tuple[StackLine, ...]:
    """What the user's own lines say: with those around it where the stack stands, else alone."""
    texts = source_lines.of(tree.sources)
    told: list[StackLine] = []
    is_first = True
    for line in lines:
        source = () if line.is_framework else texts.get((line.file, line.line), ())
        told.append(replace(line, source=source if is_first else source_lines.alone(source)))
        is_first = is_first and not source
    return tuple(told)


def _chain_of(nodes: Sequence[TreeNode], rank: int) -> Iterator[StackLine]:
    for node in nodes:
        if ranges.holds(node.ranks, rank):
            yield StackLine(
                name=node.name,
                file=node.file,
                line=node.line,
                is_framework=node.is_framework,
                is_native=node.is_native,
            )
            yield from _chain_of(node.children, rank)
            return


def _ordered(nodes: Iterable[TreeNode], wanted: _Wanted) -> list[TreeNode]:
    return sorted(
        nodes, key=lambda node: (not wanted.meets(node.ranks), node.count, _first(node.ranks))
    )


def _first(text: str) -> int:
    """The lowest rank of a range text, with which it begins."""
    digits = text.split(",", 1)[0].split("-", 1)[0]
    return int(digits) if digits.isdecimal() else 0


def _segment(node: TreeNode, wanted: _Wanted, at: str) -> Segment:
    frames = [node]
    # Where stacks end the block ends, so that those which go on have one of their own.
    while len(node.children) == 1 and node.children[0].ranks == node.ranks:
        node = node.children[0]
        frames.append(node)
    children = tuple(
        _segment(child, wanted, f"{at}.{index}")
        for index, child in enumerate(_ordered(node.children, wanted))
    )
    named = frames[0] if not frames[0].file and not frames[0].is_native else None
    return Segment(
        at=at,
        ranks=node.ranks,
        count=node.count,
        label=named.name if named is not None else "",
        frames=tuple(frames[1:] if named is not None else frames),
        is_frozen=node.is_frozen,
        moved=node.moved,
        earlier=node.earlier,
        signatures=node.signatures,
        activity=next((wanted.activities.get(key) for key in node.signatures), None),
        has_culprit=wanted.meets(node.ranks),
        children=children,
        below=len(children) + sum(child.below for child in children),
    )


def _line(frame: wire.Frame) -> StackLine:
    return StackLine(
        name=frame.name,
        file=frame.file,
        line=frame.line,
        is_framework=frame_text.is_framework(frame),
        is_native=frame.is_native,
    )
