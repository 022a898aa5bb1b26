"""Heartbeats for board tests, from few words. No assertions here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hangwatch_agent import wire
from hangwatch_server.board import Board, MemoryBoard
from hangwatch_server.board.base import job_id

KEY = "launch-1"
JOB = job_id(KEY)


def rank(
    number: int,
    *,
    start: int = 100,
    pid: int | None = None,
    world: int = 4,
    state: str = "S",
    restart: int = 0,
    certain: bool = True,
    launch: str = KEY,
    groups: Sequence[wire.GroupBeat] = (),
) -> wire.RankBeat:
    return wire.RankBeat(
        launch=launch,
        rank=number,
        local_rank=number,
        world_size=world,
        pid=1000 + number if pid is None else pid,
        start_ticks=start,
        process=wire.ProcessFacts(state=state),
        is_rank_certain=certain,
        restart=restart,
        groups=tuple(groups),
    )


def heartbeat(
    ranks: Iterable[wire.RankBeat],
    *,
    groups: Sequence[wire.GroupInfo] = (),
    restart: int = 0,
) -> wire.Heartbeat:
    return wire.Heartbeat(
        number=1,
        launches=(wire.Launch(key=KEY, name="gpt", restart=restart),),
        ranks=tuple(ranks),
        groups=tuple(groups),
    )


class Maker:
    """What boards the tests of the board's contract are run on; see the same tests over Redis."""

    make: Callable[[], Board] = MemoryBoard


def new_board() -> Board:
    return Maker.make()


def board_with(*nodes: str, now_s: float = 0.0) -> Board:
    board = new_board()
    for node in nodes:
        board.hello(node, wire.Hello(protocol=1, node=node, version="0"), now_s)
    return board
