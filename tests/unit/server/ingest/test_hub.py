"""The way back to a node: lines that break, lines that are taken over, agents shown out."""

from __future__ import annotations

import pytest
from starlette.websockets import WebSocketDisconnect

from hangwatch_agent import wire
from hangwatch_server.ingest.hub import Connection, Hub

pytestmark = pytest.mark.anyio
COMMAND = wire.SetInterval(interval_s=1.0)


class Line:
    """Fails as a line does that the other side has left, or keeps what is sent."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.sent: list[bytes] = []
        self.closed: list[str] = []

    async def send_bytes(self, data: bytes) -> None:
        self._fail()
        self.sent.append(data)

    async def close(self, code: int, reason: str) -> None:
        self._fail()
        self.closed.append(reason)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    "error", [WebSocketDisconnect(1006), RuntimeError("closed"), ConnectionResetError()], ids=repr
)
async def test_broken_line_raises_nothing_and_keeps_no_other_from_a_goodbye(
    error: Exception,
) -> None:
    hub, whole = Hub(), Line()
    hub.join(Connection("node-a", Line(error), 0.0), 0.0)
    hub.join(Connection("node-b", whole, 0.0), 0.0)

    is_sent = await hub.send("node-a", COMMAND)
    await hub.close_all("the server is stopping")

    assert not is_sent
    assert whole.closed == ["the server is stopping"]


async def test_nothing_is_sent_to_an_agent_whose_token_is_no_longer_good() -> None:
    hub, one, two = Hub(), Line(), Line()
    hub.join(Connection("node-a", one, 0.0, "token-a"), 0.0)
    hub.join(Connection("node-b", two, 0.0, "token-b"), 0.0)

    hub.expel({"token-a"})
    sent = [await hub.send(node, COMMAND) for node in ("node-a", "node-b")]

    assert hub.tokens() == {"token-a", "token-b"}
    assert sent == [False, True]
    assert one.sent == []
