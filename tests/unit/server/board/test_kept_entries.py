"""Beats that leave out entries which the beat before held."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.board import beats

from hangwatch_agent import wire
from hangwatch_agent.carried import Carried
from hangwatch_server import places
from hangwatch_server.board import Board
from hangwatch_server.model import RankView
from hangwatch_server.places import Places

ENTRY = wire.Entry(seq=5, op="all_reduce", is_retired=False)
GROUP = wire.GroupBeat(gid="g", counter=5, stall_s=2.0, entries=(ENTRY,), are_entries_current=True)
KEPT = msgspec.structs.replace(GROUP, entries=(), are_entries_kept=True)


def _view(board: Board) -> RankView:
    snapshot = board.snapshot(beats.JOB, 1.0)
    assert snapshot is not None
    return snapshot.ranks[0]


def _groups(board: Board) -> tuple[wire.GroupBeat, ...]:
    beat = _view(board).beat
    assert beat is not None
    return beat.groups


def _places_by_itself(view: RankView) -> Places | None:
    assert view.beat is not None
    stands = any(group.are_entries_current for group in view.beat.groups)
    return places.of(view.rank, view.beat) if stands else None


def _apply(board: Board, *groups: wire.GroupBeat, start: int = 100) -> None:
    board.apply("a", beats.heartbeat([beats.rank(0, groups=groups, start=start)]), 1.0)


def test_entries_that_are_kept_are_filled_in() -> None:
    board = beats.board_with("a")

    for group in (GROUP, KEPT, msgspec.structs.replace(KEPT, stall_s=9.0)):
        _apply(board, group)

    assert _groups(board) == (msgspec.structs.replace(GROUP, stall_s=9.0),)


def test_entries_that_nobody_has_are_unknown_and_not_empty() -> None:
    board = beats.board_with("a")

    _apply(board, KEPT)

    (group,) = _groups(board)
    assert not group.are_entries_current
    assert not group.are_entries_kept


def test_a_newer_process_does_not_inherit_entries() -> None:
    board = beats.board_with("a")
    _apply(board, GROUP)

    _apply(board, KEPT, start=500)

    assert _groups(board)[0].entries == ()
    assert not _groups(board)[0].are_entries_current


def test_places_come_with_a_rank_that_stands_still_and_not_with_one_that_moves() -> None:
    board = beats.board_with("a")

    _apply(board, GROUP)
    still = _view(board)
    _apply(board, msgspec.structs.replace(GROUP, counter=6, are_entries_current=False))

    assert still.places is not None
    assert [place.waits_in for place in still.places] == [5]
    assert _view(board).places is None


_ENTRIES = st.lists(st.integers(1, 3), max_size=2).map(
    lambda seqs: tuple(wire.Entry(seq=seq, op="x", is_retired=False) for seq in seqs)
)
_TOLD = st.lists(st.dictionaries(st.sampled_from("ab"), _ENTRIES, max_size=2), max_size=6)


@given(_TOLD)
def test_the_board_knows_the_same_as_from_whole_beats(told: list[dict[str, object]]) -> None:
    carried, whole, less = Carried(), beats.board_with("a"), beats.board_with("a")

    for number, groups in enumerate(told):
        said = [
            msgspec.structs.replace(GROUP, gid=gid, entries=entries, stall_s=float(number))
            for gid, entries in groups.items()
        ]
        ranks = carried.less([beats.rank(0, groups=said)])
        carried.note(ranks)
        whole.apply("a", beats.heartbeat([beats.rank(0, groups=said)]), 1.0)
        less.apply("a", beats.heartbeat(ranks), 1.0)
        assert _groups(less) == _groups(whole)
        assert _view(less).places == _places_by_itself(_view(whole))
