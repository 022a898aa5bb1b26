"""The conversation over a real socket, and the endpoints that do not keep to it."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.fake_ras import TEXT_2_24, FakeRank, FakeRas, communicator, status_json

from hangwatch_agent.errors import RasError
from hangwatch_agent.ras import protocol
from hangwatch_agent.ras.protocol import Answer, Endpoint

JSON = status_json(communicator([FakeRank(rank=0, pid=1)]))


def asked(fake: FakeRas, timeout_s: float = 60.0) -> Answer:
    async def conversation() -> Answer:
        async with fake.listening() as endpoint:
            return await protocol.ask(endpoint, timeout_s)

    return asyncio.run(conversation())


def test_json_is_asked_for_and_read_to_the_end() -> None:
    fake = FakeRas(answer=JSON)

    assert asked(fake) == Answer(JSON, is_json=True)
    assert fake.asked == ["CLIENT PROTOCOL 2", "TIMEOUT 5", "SET FORMAT json", "VERBOSE STATUS"]


def test_older_nccl_that_knows_no_json_is_asked_for_text() -> None:
    assert asked(FakeRas(answer=TEXT_2_24, knows_json=False)) == Answer(TEXT_2_24, is_json=False)


@pytest.mark.parametrize(
    "fake",
    [
        FakeRas(answer=JSON, greeting=b"SSH-2.0-OpenSSH_9.2\r\n"),
        FakeRas(answer=JSON, greeting=b""),
        FakeRas(answer=JSON, greeting=b"x" * 100_000),
        FakeRas(answer=JSON, is_stopped=True),
        FakeRas(answer=JSON, never_ends=True),
    ],
    ids=["another service", "silent", "endless line", "stopped", "never ends"],
)
def test_endpoint_that_does_not_keep_to_the_protocol_is_an_error_in_time(fake: FakeRas) -> None:
    with pytest.raises(RasError):
        asked(fake, timeout_s=0.3)


def test_nobody_listening_is_an_error_in_words() -> None:
    with pytest.raises(RasError, match="cannot be asked"):
        asyncio.run(protocol.ask(Endpoint("127.0.0.1", 1), 5.0))


def test_too_long_an_answer_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_ANSWER", 1000)

    with pytest.raises(RasError, match="more than 1000 bytes"):
        asked(FakeRas(answer=b"x" * 5000))
