"""What a hostile agent sends: only its own connection ends, and nobody else's ranks change."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Iterator

import msgspec
import pytest
from tests.integration.access.conftest import GOOD
from tests.support import synthetic_agent
from tests.support.running_server import RunningServer
from tests.support.synthetic_agent import SyntheticAgent
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from hangwatch_agent import wire

pytestmark = pytest.mark.integration

EVIL = "node-evil"


@pytest.fixture(scope="module")
def token(server: RunningServer) -> str:
    return server.new_token("agent", EVIL)


@contextlib.contextmanager
def dialled(server: RunningServer, token: str) -> Iterator[ClientConnection]:
    address = server.url.replace("http://", "ws://") + "/api/v1/agent/stream"
    headers = {"authorization": f"Bearer {token}"}
    with connect(
        address, additional_headers=headers, proxy=None, open_timeout=60, ping_interval=None
    ) as line:
        yield line


def hello(node: str = EVIL) -> bytes:
    return wire.encode(wire.Hello(protocol=wire.PROTOCOL, node=node, version="0.1.0"))


def refusal(line: ClientConnection) -> str:
    """Why the server ended the connection: its code, or "closed" where it gave none."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            data = line.recv(timeout=30)
            assert isinstance(data, bytes)
            frame = wire.decode_from_server(data)
            if isinstance(frame, wire.Refused):
                with contextlib.suppress(ConnectionClosed):
                    line.recv(timeout=30)
                return frame.code
    return "closed"


def forged_part(capture: str) -> bytes:
    """Stacks of a rank that runs on another's node."""
    frame = wire.Frame(name="forged", file="/evil.py", line=1)
    thread = wire.Thread(pid=1, thread_id=1, name="MainThread", frames=(frame,))
    stacks = (wire.ProcessStacks(pid=1, role="main", threads=(thread,)),)
    part = wire.CapturePart(
        capture=capture, launch=GOOD.key, rank=0, pid=1, age_s=0.0, stacks=stacks
    )
    return wire.encode(part)


def fake_heartbeat(restart: int) -> bytes:
    rank = wire.RankBeat(
        launch=GOOD.key,
        rank=0,
        local_rank=0,
        world_size=2,
        pid=666,
        start_ticks=1,
        process=wire.ProcessFacts(state="S"),
        depth=wire.Depth.PROBE,
        is_rank_certain=True,
        beat_age_s=0.0,
        restart=restart,
    )
    beat = wire.Heartbeat(number=1, launches=(GOOD,), ranks=(rank,), groups=(), is_full=True)
    return wire.encode(beat)


AFTER_HELLO: dict[str, tuple[Callable[[], bytes | str], set[str]]] = {
    "text": (lambda: "hello", {"malformed"}),
    "nothing": (lambda: b"", {"malformed"}),
    "noise": (lambda: bytes(range(256)) * 40, {"malformed"}),
    "depth": (lambda: b"\x91" * 1_000_000, {"malformed"}),
    "a list of four billion": (lambda: b"\xdd\xff\xff\xff\xff", {"malformed"}),
    "a text of four gigabytes": (lambda: b"\xdb\xff\xff\xff\xff", {"malformed"}),
    "a packed bomb": (lambda: gzip.compress(b"\0" * 20_000_000), {"malformed"}),
    "too large": (lambda: b"\0" * (wire.MAX_FRAME_BYTES + 1), {"too_large", "closed"}),
    "far too large": (lambda: b"\0" * (4 * wire.MAX_FRAME_BYTES), {"closed"}),
    "a hello for another node": (lambda: hello("node-good"), {"wrong_node", "protocol"}),
    "no frame that is known": (lambda: msgspec.msgpack.encode({"type": "shell"}), {"malformed"}),
}


@pytest.mark.parametrize("what", AFTER_HELLO)
def test_a_frame_that_means_harm_ends_its_own_connection(
    server: RunningServer, token: str, unharmed: Callable[[], None], what: str
) -> None:
    make, expected = AFTER_HELLO[what]
    with dialled(server, token) as line:
        line.send(hello())
        line.recv(timeout=30)
        with contextlib.suppress(ConnectionClosed):
            line.send(make())
        code = refusal(line)

    assert code in expected
    unharmed()


def test_a_token_speaks_for_no_other_node(
    server: RunningServer, token: str, unharmed: Callable[[], None]
) -> None:
    with dialled(server, token) as line:
        line.send(hello("node-good"))
        assert refusal(line) == "wrong_node"

    unharmed()


def test_ranks_of_anothers_node_stay_there_whatever_is_said_of_them(
    server: RunningServer, token: str, good_agent: SyntheticAgent, unharmed: Callable[[], None]
) -> None:
    with dialled(server, token) as line, server.client() as admin:
        line.send(hello())
        line.recv(timeout=30)
        for restart in (0, 1, 1_000_000):
            line.send(fake_heartbeat(restart=restart))
        job = admin.get(f"/api/v1/jobs/by-name/{GOOD.name}").json()["id"]
        ranks = admin.get(f"/api/v1/jobs/{job}/ranks").json()["items"]

        assert [(row["rank"], row["node"], row["pid"]) for row in ranks] == [
            (0, "node-good", 1000),
            (1, "node-good", 1001),
        ]

    unharmed()


def test_stacks_of_anothers_rank_are_refused_and_not_shown(
    server: RunningServer, token: str, unharmed: Callable[[], None]
) -> None:
    unharmed()
    with dialled(server, token) as line, server.client() as admin:
        line.send(hello())
        line.recv(timeout=30)
        job = admin.get(f"/api/v1/jobs/by-name/{GOOD.name}").json()["id"]
        capture = admin.post(f"/api/v1/jobs/{job}/captures", json={}).json()["id"]
        line.send(forged_part(capture))
        assert refusal(line) == "wrong_node"

        admin.get(f"/api/v1/captures/{capture}?wait=20s")
        text = admin.get(f"/api/v1/captures/{capture}.txt").text

    assert "train_step" in text
    assert "forged" not in text
    unharmed()


@pytest.mark.parametrize("scope", ["read", "operate", "enrol"])
def test_only_an_agents_token_opens_the_stream(server: RunningServer, scope: str) -> None:
    body = {"name": "x", "scopes": [scope], "nodes": "*" if scope == "enrol" else ""}
    with server.client() as admin:
        text = admin.post("/api/v1/tokens", json=body).json()["token"]

    with dialled(server, text) as line:
        assert refusal(line) == "unauthorised"


def test_a_revoked_agents_token_is_refused_when_it_is_replayed(server: RunningServer) -> None:
    body = {"name": "x", "scopes": ["agent"], "node": "node-replayed"}
    with server.client() as admin:
        made = admin.post("/api/v1/tokens", json=body).json()
        with synthetic_agent.beating(server.url, made["token"], "node-replayed"):
            admin.delete(f"/api/v1/tokens/{made['id']}")

    with dialled(server, made["token"]) as line:
        assert refusal(line) == "unauthorised"


def test_an_address_that_shows_many_wrong_tokens_is_told_when_to_come_back(
    server: RunningServer, unharmed: Callable[[], None]
) -> None:
    address = server.url.replace("http://", "ws://") + "/api/v1/agent/stream"
    found: wire.ServerFrame | None = None
    for _ in range(7):
        with connect(
            address,
            additional_headers={"authorization": "Bearer hw_00000000_guess"},
            proxy=None,
            ping_interval=None,
            source_address=("127.0.0.99", 0),
        ) as line:
            data = line.recv(timeout=30)
            assert isinstance(data, bytes)
            found = wire.decode_from_server(data)

    assert isinstance(found, wire.Refused)
    assert found.code == "too_many"
    assert found.retry_after_s is not None
    unharmed()
