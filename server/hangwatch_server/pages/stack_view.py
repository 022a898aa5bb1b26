"""What of a merged stack tree a page shows at once: its blocks within a budget, and the reader's
choices, all of which live in the address.

The blocks are folded by `stack_segments`; what lies below the budget is asked for by its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse

from hangwatch_server import ranges
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import Activity, Tree, TreeNode
from hangwatch_server.pages import render, source_lines, stack_segments
from hangwatch_server.pages.source_lines import Texts
from hangwatch_server.pages.stack_segments import Segment

MAX_BLOCKS = 240  # rendered at once: more than anybody reads, less than a browser feels
MAX_SIBLINGS = 24
MAX_LINES = 40  # of one block; those in the middle of a longer one are folded
KEPT_OUTER, KEPT_INNER = 8, 24
DEEPEST = 40  # blocks within blocks; deeper ones are asked for
_ACTIVITIES = {
    Activity.COLLECTIVE: "in a collective",
    Activity.DATALOADER: "in its dataloader",
    Activity.CHECKPOINT: "in a checkpoint",
    Activity.COMPILE: "compiling",
    Activity.MODEL_LOADING: "loading a model",
    Activity.EVALUATION: "in evaluation",
    Activity.LOCK: "waits for a lock",
    Activity.GPU: "waits for its GPU",
    Activity.RENDEZVOUS: "in a rendezvous",
    Activity.SHUTDOWN: "shutting down",
    Activity.USER_CODE: "in user code",
}

Text = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the reader asked for, as the address says it."""

    native: bool = False
    framework: bool = False  # show the frames of torch, Python and libraries as well
    signature: str = ""
    stack_rank: int | None = None
    find: str = ""
    at: str = ""  # only the block at this place
    skip: int = 0  # of its children


def choice(
    native: bool = False,
    framework: bool = False,
    signature: Annotated[str, Query(max_length=64)] = "",
    stack_rank: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
    find: Text = "",
    at: Annotated[str, Query(max_length=400, pattern=r"^(\d{1,6}(\.\d{1,6})*)?$")] = "",
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Choice:
    return Choice(
        native=native,
        framework=framework,
        signature=signature,
        stack_rank=stack_rank,
        find=find.strip(),
        at=at,
        skip=skip,
    )


Chosen = Annotated[Choice, Depends(choice)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One frame, or several of the framework's that stand in one line until they are asked for."""

    frames: tuple[TreeNode, ...]
    is_run: bool
    is_middle: bool = False  # folded for its length, not for whose frames they are
    source: str = ""  # what the line of a single frame of the user's own says


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A segment as the page draws it."""

    segment: Segment
    lines: tuple[Line, ...]
    motion: str  # "frozen", "moving", "mixed" or "" with nothing to compare
    moved: int
    activity: str
    is_wanted: bool
    share: float  # of all ranks, for the bar
    children: tuple[Block, ...]
    more: int  # children that are not here
    more_at: int  # the first of them

    @property
    def leaf(self) -> TreeNode | None:
        return self.segment.frames[-1] if self.segment.frames else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StackView:
    """A tree ready for stacks.html."""

    segments: tuple[Block, ...]
    blocks: int  # of the whole tree
    ranks: int
    choice: Choice
    base: str  # "/captures/ID": addresses of what is not here begin with it
    has_native: bool
    capture: str
    before: str
    note: str  # why what was asked for is not here
    more: int  # top blocks that are not here
    more_at: int
    query: str  # of links to more, without place
    rest: Mapping[str, str]  # parts of the address that are not about stacks

    def link(self, **changes: object) -> str:
        """The same stacks with other choices."""
        values = {**self.rest, **_values(self.choice), **changes}
        kept = {key: value for key, value in values.items() if value not in ("", None, False)}
        return f"?{urlencode({key: _text(value) for key, value in kept.items()})}"


def of(tree: Tree, request: Request, choice: Choice, *, base: str, culprits: str = "") -> StackView:
    """The blocks of a tree that this reader is shown; NotFoundError for a place that is none."""
    wanted, note = _wanted(tree, choice)
    segments: Sequence[Segment] = stack_segments.of_tree(tree, wanted or culprits)
    blocks = len(segments) + sum(segment.below for segment in segments)
    ranks = _ranks(segments)
    if choice.find:
        segments = _matching(segments, choice.find.casefold())
        note = note or ("" if segments else f"No frame holds “{choice.find}”.")
    segments = _from(segments, choice)
    shown, left = _Drawer(choice, ranks, source_lines.of(tree.sources)).level(segments, 0)
    if choice.at:
        shown = tuple(replace(block, more_at=choice.skip + block.more_at) for block in shown)
    return StackView(
        segments=shown,
        blocks=blocks,
        ranks=ranks,
        choice=choice,
        base=base,
        has_native=choice.native or any(_has_native(group.frames) for group in tree.classes),
        capture=tree.capture,
        before=tree.before,
        note=note,
        more=left,
        more_at=len(shown) if choice.at else choice.skip + len(shown),
        query=urlencode(_asked(request)),
        rest=_rest(request),
    )


def _from(segments: Sequence[Segment], choice: Choice) -> Sequence[Segment]:
    """From the place on that the address names: of one block, or of all."""
    if not choice.at:
        return segments[choice.skip :]
    found = _at(segments, choice.at)
    return (replace(found, children=found.children[choice.skip :]),)


def more(
    tree: Tree, request: Request, choice: Choice, *, base: str, culprits: str = ""
) -> HTMLResponse:
    """The blocks below `choice.at` from `choice.skip` on, as "more" brings them."""
    wanted, _ = _wanted(tree, choice)
    segments: Sequence[Segment] = stack_segments.of_tree(tree, wanted or culprits)
    ranks = _ranks(segments)
    if choice.find:
        segments = _matching(segments, choice.find.casefold())
    if choice.at:
        segments = _at(segments, choice.at).children
    drawer = _Drawer(choice, ranks, source_lines.of(tree.sources))
    blocks, left = drawer.level(segments[choice.skip :], 1)
    values = {
        "blocks": blocks,
        "more": left,
        "more_at": choice.skip + len(blocks),
        "at": choice.at,
        "base": base,
        "opened": choice.framework,
        "query": urlencode(_asked(request)),
    }
    return render.part(request, "stack_branches", values)


def _ranks(segments: Sequence[Segment]) -> int:
    return len(set().union(*(ranges.parse(segment.ranks) for segment in segments)))


class _Drawer:
    """Draws blocks until its budget is used up, a level before what lies below it."""

    def __init__(self, choice: Choice, ranks: int, texts: Texts) -> None:
        self._choice, self._ranks, self._left = choice, max(1, ranks), MAX_BLOCKS
        self._texts = texts

    def level(self, segments: Sequence[Segment], depth: int) -> tuple[tuple[Block, ...], int]:
        """The blocks of one level, and how many there is no room for."""
        room = min(MAX_SIBLINGS, max(self._left, 0)) if depth < DEEPEST else 0
        shown = segments[:room]
        self._left -= len(shown)
        blocks = tuple(self._block(segment, depth) for segment in shown)
        return blocks, len(segments) - len(shown)

    def _block(self, segment: Segment, depth: int) -> Block:
        below, left = self.level(segment.children, depth + 1)
        is_wanted = bool(self._choice.signature) and self._choice.signature in segment.signatures
        is_leaf = not segment.children or bool(segment.signatures)
        return Block(
            segment=segment,
            lines=tuple(self._told(line) for line in _lines(segment.frames, is_leaf=is_leaf)),
            motion=_motion(segment),
            moved=len(ranges.parse(segment.moved)) if segment.moved else 0,
            activity=_ACTIVITIES.get(segment.activity, "") if segment.activity else "",
            is_wanted=is_wanted,
            share=segment.count / self._ranks,
            children=below,
            more=left,
            more_at=len(below),
        )

    def _told(self, line: Line) -> Line:
        frame = line.frames[0]
        if line.is_run or frame.is_framework:
            return line
        return replace(line, source=source_lines.at(self._texts, (frame.file, frame.line)))


def _motion(segment: Segment) -> str:
    if segment.is_frozen is None:
        return ""
    if segment.is_frozen:
        return "frozen"
    return "moving" if segment.moved == segment.ranks else "mixed"


def _lines(frames: Sequence[TreeNode], *, is_leaf: bool) -> list[Line]:
    """Runs of the framework's frames in one line; the innermost frame of a stack stays seen."""
    lines: list[Line] = []
    run: list[TreeNode] = []

    def end_run() -> None:
        if run:
            lines.append(Line(frames=tuple(run), is_run=True))
            run.clear()

    for index, frame in enumerate(frames):
        if frame.is_framework and not (is_leaf and index == len(frames) - 1):
            run.append(frame)
        else:
            end_run()
            lines.append(Line(frames=(frame,), is_run=False))
    end_run()
    if len(lines) <= MAX_LINES:
        return lines
    middle = tuple(frame for line in lines[KEPT_OUTER:-KEPT_INNER] for frame in line.frames)
    folded = Line(frames=middle, is_run=True, is_middle=True)
    return [*lines[:KEPT_OUTER], folded, *lines[-KEPT_INNER:]]


def _wanted(tree: Tree, choice: Choice) -> tuple[str, str]:
    """The ranks whose blocks come first, and what to say where there are none."""
    if choice.signature:
        for group in tree.classes:
            if group.signature == choice.signature:
                return group.ranks, ""
        return "", "No rank has the stack of this link in these captures; it may have moved on."
    if choice.stack_rank is not None:
        rank = choice.stack_rank
        if any(rank in ranges.parse(root.ranks) for root in tree.roots):
            return str(rank), ""
        return "", f"No stack of rank {rank} is here."
    return "", ""


def _matching(segments: Sequence[Segment], wanted: str) -> tuple[Segment, ...]:
    """Blocks with a match in them or below, each with its whole rank set."""
    found: list[Segment] = []
    for segment in segments:
        below = _matching(segment.children, wanted)
        if below or any(_holds(frame, wanted) for frame in segment.frames):
            found.append(replace(segment, children=below))
    return tuple(found)


def _holds(frame: TreeNode, wanted: str) -> bool:
    return wanted in f"{frame.name} {frame.file}:{frame.line}".casefold()


def _at(segments: Sequence[Segment], place: str) -> Segment:
    """The block at a place such as "0.2.1", wherever filters have left it."""
    found: Segment | None = None
    level = segments
    prefix = ""
    for step in place.split("."):
        prefix = f"{prefix}.{step}" if prefix else step
        found = next((segment for segment in level if segment.at == prefix), None)
        if found is None:
            raise NotFoundError("The stacks have changed since this link was made: open them anew.")
        level = found.children
    assert found is not None  # split() gives at least one step
    return found


def _has_native(frames: Sequence[object]) -> bool:
    return any(getattr(frame, "is_native", False) for frame in frames)


def _values(choice: Choice) -> dict[str, object]:
    return {
        "native": choice.native,
        "framework": choice.framework,
        "signature": choice.signature,
        "stack_rank": choice.stack_rank,
        "find": choice.find,
    }


def _asked(request: Request) -> dict[str, str]:
    """What a request for more must repeat, so that places mean the same."""
    names = ("native", "framework", "signature", "stack_rank", "find", "before")
    return {name: request.query_params[name] for name in names if name in request.query_params}


def _rest(request: Request) -> dict[str, str]:
    own = {"native", "framework", "signature", "stack_rank", "find", "at", "skip"}
    return {name: value for name, value in request.query_params.items() if name not in own}


def _text(value: object) -> str:
    return "true" if value is True else str(value)
