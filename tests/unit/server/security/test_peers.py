"""Whom a request comes from, when proxies stand between and when somebody only says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from hangwatch_server.security import peers

PROXIES = peers.parse("10.0.0.0/8, 192.0.2.1, 2001:db8::/32")


def seen(peer: str, headers: dict[str, str], kind: str = "http") -> dict[str, Any]:
    """The scope as the application sees it; Any: ASGI's own."""
    found: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.update(scope)

    async def nothing(*_: Message) -> Message:
        return {}

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope: Scope = {"type": kind, "client": (peer, 4), "scheme": "http", "headers": raw}
    asyncio.run(peers.Peers(app, PROXIES, ("X-User", "X-Groups"))(scope, nothing, nothing))
    return found


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.1.2.3", "203.0.113.9", "203.0.113.9"),
        ("10.1.2.3", "198.51.100.1, 203.0.113.9, 10.9.9.9", "203.0.113.9"),
        ("10.1.2.3", "203.0.113.9:4711", "203.0.113.9"),
        ("10.1.2.3", "[2001:db9::1]:4711", "2001:db9::1"),
        ("::ffff:10.1.2.3", "203.0.113.9", "203.0.113.9"),
        ("10.1.2.3", "10.4.4.4", "10.4.4.4"),
        ("10.1.2.3", "nonsense", "10.1.2.3"),
        ("203.0.113.5", "127.0.0.1", "203.0.113.5"),
    ],
)
def test_the_client_is_the_first_hop_that_is_no_proxy_of_ours(
    peer: str, forwarded: str, client: str
) -> None:
    assert seen(peer, {"X-Forwarded-For": forwarded})["client"][0] == client


def test_a_trusted_proxy_says_whether_the_client_came_by_https() -> None:
    headers = {"X-Forwarded-Proto": "https"}

    assert seen("10.1.2.3", headers)["scheme"] == "https"
    assert seen("10.1.2.3", headers, "websocket")["scheme"] == "wss"
    assert seen("203.0.113.5", headers)["scheme"] == "http"
    assert seen("10.1.2.3", {"X-Forwarded-Proto": "gopher"})["scheme"] == "http"


def test_who_is_no_proxy_cannot_say_who_somebody_is() -> None:
    headers = {"X-User": "root", "X-Groups": "sre", "X-Forwarded-For": "127.0.0.1", "X-Else": "1"}

    stranger, proxy = seen("203.0.113.5", headers), seen("10.1.2.3", headers)

    assert [name for name, _ in stranger["headers"]] == [b"x-else"]
    assert (stranger["state"]["is_by_proxy"], proxy["state"]["is_by_proxy"]) == (False, True)
    assert (b"x-user", b"root") in proxy["headers"]


def test_that_a_request_was_forwarded_is_known_also_where_nobody_is_trusted() -> None:
    assert seen("127.0.0.1", {"Forwarded": "for=203.0.113.9"})["state"]["was_forwarded"]
    assert not seen("127.0.0.1", {})["state"]["was_forwarded"]


def test_what_is_no_network_is_refused_with_an_example() -> None:
    with pytest.raises(peers.ProxiesError, match=r"10\.0\.0\.0/8"):
        peers.parse("10.0.0.1/8")
