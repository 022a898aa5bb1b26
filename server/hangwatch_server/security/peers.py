"""Who really sends a request: the peer of the connection, or whom a trusted proxy names.

Only proxies of the setting `trusted_proxies` are believed. A header of anybody else is removed from
sight, so that nothing behind here can take it for true by mistake.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from hangwatch_server.errors import HangwatchError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED = frozenset({b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"forwarded"})
MAX_HOPS = 20
_SCHEMES = {"https": "wss", "http": "ws", "wss": "wss", "ws": "ws"}


class ProxiesError(HangwatchError):
    """The setting cannot be read."""


def parse(text: str) -> tuple[Network, ...]:
    """The networks of `10.0.0.0/8, 192.0.2.7`; raise ProxiesError for what is none."""
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ProxiesError(
            f"--trusted-proxies cannot be read: {error}; write addresses or networks, as in "
            "'10.0.0.0/8, 192.0.2.7'"
        ) from error


def is_in(address: str, networks: Sequence[Network]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if found.version == 6 and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found in network for network in networks)


class Peers:
    """Puts the true client and scheme into the scope, and notes whether a trusted proxy spoke."""

    def __init__(self, app: ASGIApp, proxies: Sequence[Network], identity: Sequence[str]) -> None:
        self._app = app
        self._proxies = proxies
        # What says who somebody is, is for a trusted proxy alone to say.
        self._identity = frozenset(name.lower().encode() for name in identity if name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            self._look(scope)
        await self._app(scope, receive, send)

    def _look(self, scope: Scope) -> None:
        peer = scope["client"][0] if scope.get("client") else ""
        is_trusted = is_in(peer, self._proxies)
        state = scope.setdefault("state", {})
        state["is_by_proxy"] = is_trusted
        state["was_forwarded"] = any(name in FORWARDED for name, _ in scope["headers"])
        if is_trusted:
            self._believe(scope)
        else:
            self._hide(scope, FORWARDED | self._identity)
        # Twice: the client's own and the proxy's, and nothing tells which is which.
        given = [name for name, _ in scope["headers"] if name in self._identity]
        self._hide(scope, frozenset(name for name in given if given.count(name) > 1))

    def _hide(self, scope: Scope, names: frozenset[bytes]) -> None:
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in names]

    def _believe(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hops = [hop.strip() for hop in ",".join(headers.getlist("x-forwarded-for")).split(",")]
        # From the nearest hop outwards; the first that is no proxy of ours is the client.
        for hop in reversed([hop for hop in hops if hop][-MAX_HOPS:]):
            address = _address(hop)
            if not address:
                break
            scope["client"] = (address, 0)
            if not is_in(address, self._proxies):
                break
        scheme = headers.get("x-forwarded-proto", "").strip().lower()
        if scheme in _SCHEMES:
            scope["scheme"] = _SCHEMES[scheme] if scope["type"] == "websocket" else scheme


def _address(hop: str) -> str:
    """The address of one hop, also with a port; "" for what is none."""
    text = hop.strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""
