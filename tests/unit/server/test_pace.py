"""How often agents speak while the server keeps up, and while it does not."""

from __future__ import annotations

import pytest

from hangwatch_agent import wire
from hangwatch_server.ingest.hub import Connection, Hub
from hangwatch_server.ingest.pace import CALM_LOOKS, LONG_WAIT_S, Pace

pytestmark = pytest.mark.anyio


class Line:
    """Keeps what an agent was told."""

    def __init__(self) -> None:
        self.told_s: list[float] = []

    async def send_bytes(self, data: bytes) -> None:
        frame = wire.decode_from_server(data)
        assert isinstance(frame, wire.SetInterval)
        self.told_s.append(round(frame.interval_s, 2))

    async def close(self, code: int, reason: str) -> None:
        raise AssertionError("nobody closes")


def _connected() -> tuple[Hub, list[Line]]:
    hub, lines = Hub(1.0), [Line(), Line()]
    for number, line in enumerate(lines):
        hub.join(Connection(f"node-{number}", line, 0.0), 0.0)
    return hub, lines


async def test_agents_speak_less_often_while_frames_wait_up_to_a_limit() -> None:
    hub, lines = _connected()
    pace = Pace(hub, 1.0, 3.0)

    for _ in range(5):
        await pace.look(LONG_WAIT_S)

    assert [line.told_s for line in lines] == [[1.5, 2.25, 3.0]] * 2
    assert hub.interval_s == 3.0


async def test_they_speak_more_often_again_after_a_long_calm() -> None:
    hub, lines = _connected()
    pace = Pace(hub, 1.0, 3.0)
    await pace.look(LONG_WAIT_S)

    for wait_s in (*[0.0] * (CALM_LOOKS - 1), LONG_WAIT_S / 2, *[0.0] * 3 * CALM_LOOKS):
        await pace.look(wait_s)

    assert lines[0].told_s == [1.5, 1.0]


async def test_a_server_that_keeps_up_says_nothing() -> None:
    hub, lines = _connected()
    pace = Pace(hub, 1.0, 3.0)

    for _ in range(2 * CALM_LOOKS):
        await pace.look(0.01)

    assert lines[0].told_s == []
