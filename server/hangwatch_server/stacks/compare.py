"""Two captures of the same ranks side by side: who moved and from where to where. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hangwatch_agent import wire
from hangwatch_server import outlines, ranges
from hangwatch_server.model import Capture, Comparison, Move
from hangwatch_server.outlines import Key, Outlined
from hangwatch_server.stacks import frames, signature

_Stack = tuple[wire.Frame, ...]


def compare(before: Capture, earlier: Outlined, after: Capture, later: Outlined) -> Comparison:
    """Main threads alone: a rank is frozen when all of its frames are the same, line for line."""
    then, now = _mains(earlier), _mains(later)
    moves: dict[tuple[Key, Key], list[int]] = {}
    for rank in then.keys() & now.keys():
        moves.setdefault((then[rank], now[rank]), []).append(rank)
    frozen = [rank for (old, new), ranks in moves.items() if old == new for rank in ranks]
    moved = [rank for (old, new), ranks in moves.items() if old != new for rank in ranks]
    return Comparison(
        before=before,
        after=after,
        moved=ranges.text(moved),
        frozen=ranges.text(frozen),
        only_before=ranges.text(then.keys() - now.keys()),
        only_after=ranges.text(now.keys() - then.keys()),
        moves=tuple(
            sorted(
                (
                    _move(_frames(earlier, old), _frames(later, new), ranks)
                    for (old, new), ranks in moves.items()
                ),
                key=_order,
            )
        ),
    )


def _mains(stacks: Outlined) -> dict[int, Key]:
    """By rank; a rank whose main process has no stack that can be read has none."""
    mains = {key for key, process in stacks.examples.items() if process.role == "main"}
    found = {}
    for outline in stacks.outlines:
        key = next((key for _, key in outline.processes if key in mains), None)
        if key is not None:
            found[outline.rank] = key
    return found


def _frames(stacks: Outlined, key: Key) -> _Stack:
    thread = outlines.main_thread(stacks.examples[key])
    return thread.frames if thread is not None else ()


def _move(old: _Stack, new: _Stack, ranks: Sequence[int]) -> Move:
    return Move(
        ranks=ranges.text(ranks),
        count=len(ranks),
        before=_words(old),
        after=_words(new),
        is_frozen=old == new,
        signature=signature.signature(new),
    )


def _words(stack: _Stack) -> str:
    where, leaf = frames.place(stack)
    return where if not leaf or where.endswith(f" in {leaf}") else f"{where}, inside {leaf}"


def _order(move: Move) -> tuple[bool, int, str]:
    return (move.is_frozen, move.count, move.ranks)
