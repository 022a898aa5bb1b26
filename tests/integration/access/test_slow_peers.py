"""Peers that send slowly or stop half-way: the real protocol, with limits short enough to await."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.responses import StreamingResponse
from tests.support import raw_http, waiting

from hangwatch_server import protocol
from hangwatch_server.api import envelope, problems
from hangwatch_server.quotas import Quota
from hangwatch_server.security import peers

pytestmark = pytest.mark.integration

HOST = b"Host: 127.0.0.1\r\n"
QUOTA = Quota("endless answers", each=1, most=1)
POST = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 10\r\n\r\n"


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that waits for half a second instead of ten and more."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.5)
    monkeypatch.setattr(protocol, "MESSAGE_S", 2.0)
    monkeypatch.setattr(protocol, "UNREAD_S", 0.5, raising=False)
    monkeypatch.setattr(envelope, "BODY_IDLE_S", 0.5)
    app = FastAPI()

    @app.post("/echo")
    async def echo(request: Request) -> str:
        return (await request.body()).decode()

    @app.post("/deaf")
    async def deaf() -> str:
        return "answered without having listened"

    async def place() -> AsyncIterator[None]:
        with QUOTA.place("ada"):
            yield

    @app.get("/endless", dependencies=[Depends(place)])
    async def endless() -> StreamingResponse:
        return StreamingResponse(_pieces(), media_type="text/plain")

    problems.install(app)
    app.add_middleware(envelope.Envelope)
    config = uvicorn.Config(app, http=protocol.BoundedProtocol, lifespan="off", log_config=None)
    with _served(config) as address:
        yield address


async def _pieces() -> AsyncIterator[bytes]:
    while True:
        await asyncio.sleep(0)  # as whoever asks a database would let others have their turn
        yield b"x" * 65536


@contextlib.contextmanager
def _served(config: uvicorn.Config) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            waiting.until(lambda: server.started, 30, "it listens")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


CROWD = protocol.Crowd(2)


@pytest.fixture
def narrow() -> Iterator[str]:
    """A server that lets each address have two connections."""
    app = FastAPI()

    @app.get("/")
    async def root() -> str:
        return "answered"

    bounded = protocol.bounded(CROWD)
    with _served(uvicorn.Config(app, http=bounded, lifespan="off", log_config=None)) as address:
        yield address


def test_an_address_has_as_many_connections_as_allowed_and_the_next_is_told_why(
    narrow: str,
) -> None:
    get = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
    with raw_http.connected(narrow) as first, raw_http.connected(narrow) as second:
        for line in (first, second):
            line.sendall(get)
            assert raw_http.statuses(raw_http.received(line, 0.2)) == [200]

        with raw_http.connected(narrow) as third:
            answer = _ended(third)
        first.sendall(get)
        still = raw_http.statuses(raw_http.received(first, 0.2))

    assert raw_http.statuses(answer) == [503]
    assert b"2 connections open, as many as one may" in answer
    assert b"retry-after" in answer
    assert still == [200]

    def is_let_in() -> bool:
        with raw_http.connected(narrow) as line:
            line.sendall(get)
            return raw_http.statuses(raw_http.received(line, 0.2)) == [200]

    waiting.until(is_let_in, 20, "there is room again")


def test_proxies_that_are_trusted_are_let_in_without_number() -> None:
    crowd = protocol.Crowd(1, peers.parse("10.0.0.0/8"))

    assert all(crowd.enter("10.0.0.7") for _ in range(3))
    assert crowd.enter("2001:db8::1")
    assert not crowd.enter("2001:db8::2")  # of the same machine, perhaps
    assert crowd.enter("2001:db8:0:1::2")


def _ended(line: socket.socket) -> bytes:
    """What came until the server closed; fails when it leaves the connection open."""
    data = b""
    line.settimeout(raw_http.TIMEOUT_S)
    while True:
        try:
            piece = line.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


@pytest.mark.parametrize(
    "beginning", [b"", b"P", b"POST /echo HTTP/1.1\r\n", b"POST /echo HTTP/1.1\r\nX: a\r\n"]
)
def test_a_head_that_does_not_end_is_waited_for_only_so_long(url: str, beginning: bytes) -> None:
    with raw_http.connected(url) as line:
        line.sendall(beginning)

        assert raw_http.statuses(_ended(line)) == [408]


def test_a_head_that_drips_is_waited_for_no_longer(url: str) -> None:
    with raw_http.connected(url) as line:
        line.sendall(b"POST /echo HTTP/1.1\r\n")

        def is_answered() -> bool:
            line.sendall(b"X: a\r\n")
            return bool(select.select([line], [], [], 0.05)[0])

        waiting.until(is_answered, 20, "the server has had enough")
        assert raw_http.statuses(line.recv(1024)) == [408]


def test_a_body_that_stops_half_way_is_answered_and_closed(url: str) -> None:
    with raw_http.connected(url) as line:
        line.sendall(POST + b"half")
        answer = _ended(line)

    assert raw_http.statuses(answer) == [408]
    assert b"nothing more of the request's body came" in answer


def test_a_body_that_nobody_waits_for_holds_its_connection_only_so_long(url: str) -> None:
    with raw_http.connected(url) as line:
        line.sendall(POST.replace(b"/echo", b"/deaf") + b"half")

        assert raw_http.statuses(_ended(line)) == [200]


def test_a_second_request_on_a_connection_has_its_own_time(url: str) -> None:
    with raw_http.connected(url) as line:
        for _ in range(3):
            line.sendall(POST + b"0123456789")
            assert raw_http.statuses(raw_http.received(line, 0.2)) == [200]
        line.sendall(b"POST /ec")

        assert raw_http.statuses(_ended(line)) == [408]


def test_pipelined_requests_are_all_answered(url: str) -> None:
    with raw_http.connected(url) as line:
        line.sendall((POST + b"0123456789") * 3)

        assert raw_http.statuses(raw_http.received(line, 0.3)) == [200, 200, 200]


def test_who_does_not_read_an_answer_holds_no_place_for_ever(url: str) -> None:
    with raw_http.connected(url) as line:
        line.sendall(b"GET /endless HTTP/1.1\r\n" + HOST + b"\r\n")
        waiting.until(lambda: QUOTA.taken == 1, 20, "the answer has begun")

        waiting.until(lambda: QUOTA.taken == 0, 20, "the server has given it up")


def test_who_goes_in_the_midst_of_an_answer_gives_the_place_back(url: str) -> None:
    with raw_http.connected(url) as line:
        line.sendall(b"GET /endless HTTP/1.1\r\n" + HOST + b"\r\n")
        line.recv(1024)

    waiting.until(lambda: QUOTA.taken == 0, 20, "the place is free")
