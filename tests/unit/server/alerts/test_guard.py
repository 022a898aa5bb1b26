"""Where outgoing requests may go: public addresses, and what the operator named."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
from collections.abc import Sequence

import pytest

from hangwatch_server.alerts.guard import (
    Guard,
    NoSuchNameError,
    NotAllowedError,
    is_public,
    read_allowed,
    resolve,
)
from hangwatch_server.errors import HangwatchError

pytestmark = pytest.mark.anyio

INSIDE = [
    "168.63.129.16",  # public by number, and Azure's own
    "0.0.0.0",  # noqa: S104  (an address to refuse)
    "10.1.2.3",
    "100.64.0.1",  # carriers' NAT
    "127.0.0.1",
    "169.254.169.254",  # metadata of clouds
    "172.16.0.1",
    "192.0.0.1",
    "192.168.1.1",
    "198.18.0.1",  # benchmarks
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",  # 10.0.0.1 by NAT64
    "64:ff9b::a9fe:a9fe",  # 169.254.169.254 by NAT64
    "64:ff9b:1::1",  # NAT64 of a site
    "2002:a00:1::1",  # 10.0.0.1 by 6to4
    "fc00::1",
    "fe80::1",
    "fec0::1",
    "fd00:ec2::254",  # metadata of a cloud
    "ff02::1",
]
OUTSIDE = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "2606:4700:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]


def resolving(**names: Sequence[str]) -> Guard:
    """A guard whose names are these."""
    return guard("", **names)


def guard(allow: str, **names: Sequence[str]) -> Guard:
    async def resolve(host: str, port: int) -> Sequence[str]:
        if host in names:
            return names[host]
        ipaddress.ip_address(host)  # as the resolver gives an address for itself
        return [host]

    return Guard(read_allowed(allow), resolve)


@pytest.mark.parametrize("address", INSIDE)
async def test_an_inside_address_is_refused_in_every_spelling(address: str) -> None:
    with pytest.raises(NotAllowedError, match="outgoing_allow"):
        await resolving().addresses(address, 80)


@pytest.mark.parametrize("address", OUTSIDE)
def test_an_outside_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


async def test_a_name_that_leads_inside_is_refused() -> None:
    with pytest.raises(NotAllowedError, match=r"metadata \(169\.254\.169\.254\)"):
        await resolving(metadata=["169.254.169.254"]).addresses("metadata", 80)


async def test_of_several_addresses_only_public_ones_are_used() -> None:
    found = await resolving(mixed=["10.0.0.1", "1.1.1.1", "::1"]).addresses("mixed", 443)

    assert found == ("1.1.1.1",)


async def test_an_allowed_name_may_lead_inside() -> None:
    allowed = guard("alertmanager, other.example", alertmanager=["10.0.0.9"])

    assert await allowed.addresses("Alertmanager.", 9093) == ("10.0.0.9",)


async def test_an_allowed_network_may_be_reached_and_no_other() -> None:
    allowed = guard("10.20.0.0/16", near=["10.20.1.1"], far=["10.21.1.1"])

    assert await allowed.addresses("near", 80) == ("10.20.1.1",)
    with pytest.raises(NotAllowedError):
        await allowed.addresses("far", 80)


async def test_an_allowed_network_is_meant_however_its_address_is_written() -> None:
    assert await guard("127.0.0.0/8").addresses("::ffff:127.0.0.1", 80)


async def test_a_name_without_address_may_have_one_later() -> None:
    with pytest.raises(NoSuchNameError, match="spelling"):
        await resolving().addresses("nowhere.example", 80)


def test_behind_a_proxy_written_addresses_are_still_checked() -> None:
    for host in (
        *("127.0.0.1", "[::1]", "169.254.169.254", "127.1", "2130706433", "0x7f000001"),
        *("0177.0.0.1", "localhost", "Localhost.", "a.localhost", "[::ffff:10.0.0.1]"),
    ):
        with pytest.raises(NotAllowedError):
            resolving().check_literal(host)
    for host in ("hooks.slack.com", "1.1.1.1", "cafe", "300.1.1.1.1"):
        resolving().check_literal(host)


async def test_a_resolver_that_does_not_answer_keeps_no_other_work_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Detection judges in the loop's own threads, of which there are few."""
    is_back = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **options: is_back.wait(30) and [])
    looking_up = [asyncio.create_task(resolve("away.example", 443)) for _ in range(64)]
    try:
        async with asyncio.timeout(10):
            assert await asyncio.to_thread(lambda: "judged") == "judged"
    finally:
        is_back.set()
        await asyncio.gather(*looking_up)


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "300.1.1.1", "fe80::/200"])
def test_an_odd_network_stops_the_server_with_words(text: str) -> None:
    with pytest.raises(HangwatchError, match="outgoing_allow"):
        read_allowed(text)
