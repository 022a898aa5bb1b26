"""Two captures of the same ranks side by side: who moved and from where to where. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.model import Capture, Comparison, Move
from hangwatch_server.stacks import frames, signature
from hangwatch_server.stacks.merge import RankStacks

_Stack = tuple[wire.Frame, ...]


def compare(
    before: Capture, earlier: Iterable[RankStacks], after: Capture, later: Iterable[RankStacks]
) -> Comparison:
    """Main threads alone: a rank is frozen when all of its frames are the same, line for line."""
    then, now = _stacks(earlier), _stacks(later)
    moves: dict[tuple[_Stack, _Stack], list[int]] = {}
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
        moves=tuple(sorted((_move(*pair, ranks) for pair, ranks in moves.items()), key=_order)),
    )


def _stacks(parts: Iterable[RankStacks]) -> dict[int, _Stack]:
    found: dict[int, _Stack] = {}
    for part in parts:
        process = frames.main_process(part.stacks)
        thread = frames.main_thread(process) if process is not None else None
        if thread is not None and thread.frames:
            found[part.rank] = thread.frames
    return found


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
