"""A server that stops: jobs first, then its agents, each in its turn; alone it only waits."""

from __future__ import annotations

import pytest
from tests.unit.server.ingest.test_hub import Line

from hangwatch_agent import wire
from hangwatch_server.ingest.goodbye import Leaving
from hangwatch_server.ingest.hub import Connection, Hub
from hangwatch_server.relay import Alone
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.anyio
AT_ONCE = ServerSettings(move_agents_s=0.0)


class OneOfTwo(Alone):
    """Notes what the other server is told."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def others(self) -> bool:
        return True

    def moves(self, node: str) -> None:
        self._told.append(f"{node} moves")


class Jobs:
    def __init__(self, told: list[str]) -> None:
        self._told = told

    async def give_up(self) -> None:
        self._told.append("jobs are free")


def hub_with(*lines: Line) -> Hub:
    hub = Hub()
    for number, line in enumerate(lines):
        hub.join(Connection(f"node-{number}", line, 0.0), 0.0)
    return hub


async def test_jobs_are_handed_over_before_the_agents_are_sent_away() -> None:
    told: list[str] = []
    lines = Line(), Line()
    hub = hub_with(*lines)
    leaving = Leaving(AT_ONCE, hub, OneOfTwo(told), Jobs(told), chance=lambda: 0.5)

    await leaving.say_goodbye()

    assert told == ["jobs are free", "node-0 moves", "node-1 moves"]
    assert hub.nodes() == ()
    assert not leaving.takes_agents
    for line in lines:
        (frame,) = [wire.decode_from_server(data) for data in line.sent]
        assert isinstance(frame, wire.Refused)
        assert (frame.code, frame.retry_after_s) == (wire.GOING_AWAY, 0.75)
        assert line.closed == [frame.reason]


async def test_agents_are_told_to_come_back_at_different_times() -> None:
    chances = iter((0.0, 0.9))
    leaving = Leaving(AT_ONCE, Hub(), OneOfTwo([]), Jobs([]), chance=lambda: next(chances))

    assert [leaving.refusal().retry_after_s for _ in range(2)] == [0.5, 0.95]


async def test_line_that_is_broken_keeps_no_other_agent_from_moving() -> None:
    whole = Line()
    leaving = Leaving(AT_ONCE, hub_with(Line(OSError()), whole), OneOfTwo([]), Jobs([]))

    await leaving.say_goodbye()

    assert len(whole.closed) == 1


async def test_server_that_is_alone_keeps_jobs_and_agents_to_its_end() -> None:
    told: list[str] = []
    line = Line()
    leaving = Leaving(AT_ONCE, hub_with(line), Alone(), Jobs(told))

    await leaving.say_goodbye()

    assert leaving.is_on
    assert leaving.takes_agents
    assert (told, line.sent) == ([], [])
