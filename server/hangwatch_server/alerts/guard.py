"""Where an outgoing request may go: public addresses, and what the operator allows besides.

Whoever may make a channel chooses an address that this server then calls. Without this guard it
could reach what only the server reaches: the metadata service of a cloud, databases, neighbours.
A name is resolved here, and the caller connects to the very address that was checked, so that a
name which changes its mind in between (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from hangwatch_server.errors import HangwatchError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
_Address = IPv4Address | IPv6Address
# RFC 6052: an IPv6-only network reaches IPv4 hosts by these; the last 32 bits say which.
_NAT64 = IPv6Network("64:ff9b::/96")
# Public by its number, and yet Azure's own: it hands secrets of a machine to whoever runs on it.
# https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
_WIRE_SERVER = IPv4Address("168.63.129.16")
# An IPv4 address as C reads it: 127.1, 2130706433, 0x7f000001.
_NUMBERS = re.compile(r"[0-9a-fx]+(\.[0-9a-fx]+){0,3}")
# Apart from the threads that detection uses: where DNS is away, each look-up takes half a minute.
_threads = ThreadPoolExecutor(max_workers=32, thread_name_prefix="names")


class NotAllowedError(HangwatchError):
    """The address is one that requests must not go to."""


class NoSuchNameError(HangwatchError):
    """The name cannot be resolved now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What may be reached although it is not public."""

    names: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()


def read_allowed(text: str) -> Allowed:
    """Read `alertmanager.internal, 10.20.0.0/16`; raise HangwatchError for a part that is odd."""
    names, networks = set(), []
    for part in text.replace(",", " ").split():
        if "/" in part or part[-1:].isdigit() or ":" in part:
            networks.append(_network(part))
        else:
            names.add(_plain_name(part))
    return Allowed(names=frozenset(names), networks=tuple(networks))


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name as this machine's resolver knows them."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_threads, look_up)
    return [str(entry[4][0]) for entry in found]


class Guard:
    """Tells for a host the addresses that may be connected to."""

    def __init__(self, allowed: Allowed, resolve: Resolve = resolve) -> None:
        self._allowed, self._resolve = allowed, resolve

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """At least one address; NotAllowedError or NoSuchNameError say why there is none."""
        name = _plain_name(host)
        try:
            found = [ipaddress.ip_address(text) for text in await self._resolve(name, port)]
        except (OSError, UnicodeError, ValueError) as error:
            raise NoSuchNameError(
                f"{host} has no address here: check its spelling and this server's DNS ({error})"
            ) from error
        good = [address for address in found if self._may(name, address)]
        if not good:
            self._refuse(host, found)
        return tuple(str(address) for address in good)

    def check_literal(self, host: str) -> None:
        """Refuse a bad address that is written out; names are somebody else's to resolve."""
        name = _plain_name(host)
        address = _written_out(name)
        if address is not None and not self._may(name, address):
            self._refuse(host, [address])

    def _may(self, name: str, address: _Address) -> bool:
        if name in self._allowed.names or is_public(address):
            return True
        return any(_meant(address) in network for network in self._allowed.networks)

    def _refuse(self, host: str, found: Sequence[_Address]) -> None:
        where = ", ".join(str(address) for address in found[:3]) or "no address"
        told = host if host.strip("[]") == where else f"{host} ({where})"
        raise NotAllowedError(
            f"{told} is not a public address, and alerts go nowhere else: if this receiver is "
            "meant, add its host name or network to the setting outgoing_allow and restart"
        )


def is_public(address: _Address) -> bool:
    """Whether the address is one of the open internet, whatever form it is written in."""
    meant = _meant(address)
    if isinstance(meant, IPv6Address) and meant.is_site_local:
        return False  # given up by RFC 3879, and still in use inside old networks
    if meant == _WIRE_SERVER:
        return False
    return meant.is_global and not (
        meant.is_multicast or meant.is_reserved or meant.is_link_local or meant.is_unspecified
    )


def _meant(address: _Address) -> _Address:
    """The IPv4 address inside an IPv6 one that only carries it."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
        if address.sixtofour is not None:
            return address.sixtofour
    return address


def _written_out(name: str) -> _Address | None:
    """The address that a name is without asking anybody, in whatever form."""
    if name == "localhost" or name.endswith(".localhost"):
        return IPv4Address("127.0.0.1")
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(name)) if _NUMBERS.fullmatch(name) else None
    except OSError:
        return None


def _network(part: str) -> IPv4Network | IPv6Network:
    try:
        return ipaddress.ip_network(part)
    except ValueError as error:
        raise HangwatchError(
            f"outgoing_allow: '{part[:60]}' is neither a host name nor a network such as "
            f"10.20.0.0/16 ({error})"
        ) from error


def _plain_name(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()
