"""Many ranks' stacks as one prefix tree with rank sets, and as classes of equal stacks.

After STAT (Arnold et al., IPDPS 2007): equal stacks are found before the tree is built, so that the
work grows with the number of distinct stacks. It renders nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hangwatch_agent import wire
from hangwatch_server import garbage, outlines, ranges
from hangwatch_server.model import Earlier, StackClass, TreeNode
from hangwatch_server.outlines import Key, Outline, Outlined
from hangwatch_server.stacks import activity, frames, signature

# Children appear under a named root of their own, so that a loader's stack is not taken for a
# rank's.
_ROLE_ROOTS = {
    "loader": "loader workers",
    "compile": "compilers",
    "checkpoint": "checkpoint writers",
}

_Frames = tuple[wire.Frame, ...]
# A long chain of frames has one rank set: its text is made once.
_Texts = dict[frozenset[int], str]
_MAX_EARLIER = 8  # places that the ranks of one stack came from


@dataclass(frozen=True, slots=True)
class RankStacks:
    """The captured processes of one rank."""

    rank: int
    stacks: tuple[wire.ProcessStacks, ...]


@dataclass(slots=True)
class _Distinct:
    """A stack that at least one main thread has."""

    role: str
    process: wire.ProcessStacks
    thread: wire.Thread
    ranks: list[int] = field(default_factory=list)
    compared: int = 0  # ranks that have an earlier stack
    still: int = 0  # and the same one
    earlier: dict[Key, list[int]] = field(default_factory=dict)
    was_at: Mapping[Key, _Frames] = field(default_factory=dict)  # what the keys of `earlier` mean
    signature: str = ""  # once all are found: equal stacks are signed once


@dataclass(slots=True)
class _Node:
    """A frame in the tree; what it sums up is known once its children's is (`_sum_up`)."""

    ends: list[_Distinct] = field(default_factory=list)
    children: dict[wire.Frame, _Node] = field(default_factory=dict)
    ranks: frozenset[int] = frozenset()
    compared: int = 0
    still: int = 0
    moved: frozenset[int] = frozenset()


def merge(
    parts: Sequence[RankStacks],
    previous: Sequence[RankStacks] = (),
    *,
    native: bool = False,
    show_framework: bool = True,
) -> tuple[tuple[TreeNode, ...], tuple[StackClass, ...]]:
    """`merge_outlined` of stacks that are all at hand."""
    with garbage.uncollected():
        return merge_outlined(
            outlined(parts), outlined(previous), native=native, show_framework=show_framework
        )


def merge_outlined(
    now: Outlined, before: Outlined, *, native: bool = False, show_framework: bool = True
) -> tuple[tuple[TreeNode, ...], tuple[StackClass, ...]]:
    """The tree of main threads, children's under named roots; classes of stacks, odd ones first.

    1. Find distinct stacks by their keys.
    2. Where `before` has the process too, count whether its key is the same: frozen or moving.
    3. Insert each distinct stack once, outermost frame first, with its whole rank set.
    """
    with garbage.uncollected():
        distinct = _distinct(now, before)
        root = _Node()
        for stack in distinct:
            stack.signature = signature.signature(stack.thread.frames)
            _insert(root, stack, _shown(stack, native, show_framework))
        _sum_up(root)
        mains = [stack for stack in distinct if stack.role == "main"]
        return _children(root, {}), _classes(mains)


def outlined(parts: Iterable[RankStacks]) -> Outlined:
    """The same stacks by keys that hold within this process."""
    found = []
    examples: dict[Key, wire.ProcessStacks] = {}
    for part in parts:
        processes = []
        for process in part.stacks:
            thread = outlines.main_thread(process)
            if thread is None or not thread.frames:
                continue
            # Comparing frames too would cost twice as much; 64 keyed bits do not collide by chance.
            key = hash((process.role, thread.frames))
            processes.append((process.pid, key))
            if key not in examples:
                examples[key] = process
        found.append(Outline(part.rank, tuple(processes)))
    return Outlined(found, examples)


def _distinct(now: Outlined, before: Outlined) -> list[_Distinct]:
    found = _examples(now, before)
    earlier = {(was.rank, pid): key for was in before.outlines for pid, key in was.processes}
    for outline in now.outlines:
        rank = outline.rank
        for pid, key in outline.processes:
            entry = found.get(key)
            if entry is None:  # nobody's stack with this key can be read
                continue
            entry.ranks.append(rank)
            if earlier and (was_key := earlier.get((rank, pid))) is not None:
                entry.compared += 1
                if was_key == key:
                    entry.still += 1
                else:
                    entry.earlier.setdefault(was_key, []).append(rank)
    return [entry for entry in found.values() if entry.ranks]


def _examples(now: Outlined, before: Outlined) -> dict[Key, _Distinct]:
    threads = ((key, outlines.main_thread(process)) for key, process in before.examples.items())
    was_at = {key: thread.frames for key, thread in threads if thread is not None}
    found = {}
    for key, process in now.examples.items():
        thread = outlines.main_thread(process)
        if thread is not None:
            found[key] = _Distinct(process.role, process, thread, was_at=was_at)
    return found


def _shown(stack: _Distinct, native: bool, show_framework: bool) -> list[wire.Frame]:
    """The frames to draw, outermost first; a stack without user code keeps its innermost frame."""
    kept = list(stack.thread.frames) if native else list(frames.python_only(stack.thread.frames))
    if not show_framework:
        kept = [frame for frame in kept if not frames.is_framework(frame)] or kept[:1]
    kept.reverse()
    if stack.role != "main":
        kept.insert(0, wire.Frame(name=_ROLE_ROOTS.get(stack.role, "children"), file="", line=0))
    return kept


def _insert(root: _Node, stack: _Distinct, path: Iterable[wire.Frame]) -> None:
    node = root
    for frame in path:
        child = node.children.get(frame)
        if child is None:
            child = node.children[frame] = _Node()
        node = child
    node.ends.append(stack)


def _sum_up(node: _Node) -> None:
    """Ranks and counts of a node and all below it; a chain of frames shares one set of ranks."""
    for child in node.children.values():
        _sum_up(child)
    below = node.children.values()
    node.ranks = _union([*(end.ranks for end in node.ends), *(child.ranks for child in below)])
    node.moved = _union(
        [
            *(ranks for end in node.ends for ranks in end.earlier.values()),
            *(child.moved for child in below),
        ]
    )
    node.compared = sum(end.compared for end in node.ends) + sum(c.compared for c in below)
    node.still = sum(end.still for end in node.ends) + sum(child.still for child in below)


def _union(sets: Sequence[Collection[int]]) -> frozenset[int]:
    return frozenset(sets[0]) if len(sets) == 1 else frozenset().union(*sets)


def _children(node: _Node, texts: _Texts) -> tuple[TreeNode, ...]:
    """Odd branches first: fewest ranks, then by place so that the order is stable."""
    ordered = list(node.children.items())
    if len(ordered) > 1:
        ordered.sort(key=_oddity)
    return tuple(_tree_node(frame, child, texts) for frame, child in ordered)


def _oddity(item: tuple[wire.Frame, _Node]) -> tuple[int, str, int, str, bool]:
    frame, node = item
    return (len(node.ranks), frame.file, frame.line, frame.name, frame.is_native)


def _tree_node(frame: wire.Frame, node: _Node, texts: _Texts) -> TreeNode:
    return TreeNode(
        name=frame.name,
        file=frame.file,
        line=frame.line,
        ranks=_text(node.ranks, texts),
        count=len(node.ranks),
        is_framework=bool(frame.file) and frames.is_framework(frame),
        is_native=frame.is_native,
        is_frozen=node.still == node.compared if node.compared else None,
        moved=_text(node.moved, texts),
        signatures=tuple(sorted({end.signature for end in node.ends})),
        earlier=_earlier(node.ends) if node.moved else (),
        children=_children(node, texts),
    )


def _text(ranks: frozenset[int], texts: _Texts) -> str:
    if ranks not in texts:
        texts[ranks] = ranges.text(ranks)
    return texts[ranks]


def _earlier(ends: Sequence[_Distinct]) -> tuple[Earlier, ...]:
    """Where the ranks whose stack ends here were before, most ranks first."""
    places: dict[tuple[str, str], set[int]] = {}
    for end in ends:
        for key, ranks in end.earlier.items():
            places.setdefault(frames.place(end.was_at.get(key, ())), set()).update(ranks)
    ordered = sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        Earlier(ranks=ranges.text(ranks), count=len(ranks), where=where, leaf=leaf)
        for (where, leaf), ranks in ordered[:_MAX_EARLIER]
    )


def _classes(stacks: Sequence[_Distinct]) -> tuple[StackClass, ...]:
    """Equal signatures are one class, so native frames and temporary paths do not split it."""
    grouped: dict[str, list[_Distinct]] = {}
    for stack in stacks:
        grouped.setdefault(stack.signature, []).append(stack)
    classes = [_class(key, members) for key, members in grouped.items()]
    return tuple(sorted(classes, key=lambda item: (item.count, item.signature)))


def _class(key: str, members: Sequence[_Distinct]) -> StackClass:
    first = members[0]
    ranks = {rank for member in members for rank in member.ranks}
    compared = sum(member.compared for member in members)
    return StackClass(
        signature=key,
        ranks=ranges.text(ranks),
        count=len(ranks),
        activity=activity.read(first.process, first.thread).activity,
        where=frames.where(frames.user_frame(first.thread.frames)),
        frames=first.thread.frames,
        is_frozen=sum(member.still for member in members) == compared if compared else None,
    )
