"""Who this node is: boot id, version, and addresses that all nodes of a job agree on."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import socket
import threading
import time
from pathlib import Path

import psutil

from hangwatch_agent import wire
from hangwatch_agent.spool import Clock

RESOLVE_S = 2.0  # heartbeats wait meanwhile; after 3 s the server would call this agent late


@functools.cache
def boot_id() -> str:
    """The kernel's id of this boot; "" where it cannot be read."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def version() -> str:
    """The installed version of Hangwatch."""
    return importlib.metadata.version("hangwatch")


def clock() -> Clock:
    """This node's clocks now."""
    return Clock(boot_id=boot_id(), monotonic_ns=time.monotonic_ns(), wall_s=time.time())


def addresses() -> tuple[str, ...]:
    """This node's own addresses, without those that every node has."""
    own = {
        address.address.partition("%")[0]
        for interface in psutil.net_if_addrs().values()
        for address in interface
        if address.family in (socket.AF_INET, socket.AF_INET6)
    }
    own = {text for text in own if not text.startswith(("127.", "fe80:")) and text != "::1"}
    return tuple(sorted(own)[: wire.MAX_ADDRESSES])


def _addresses(host: str) -> list[str]:
    """The host's addresses in order; none where they are unknown after RESOLVE_S.

    The name is a job's word. A thread looks it up, since the resolver may wait for half a minute
    and knows no limit of its own.
    """
    found: list[str] = []

    def look_up() -> None:
        # A name that cannot be encoded is a ValueError.
        with contextlib.suppress(OSError, ValueError):
            answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found.extend(sorted(str(item[4][0]) for item in answers))

    if host:
        thread = threading.Thread(target=look_up, name="resolve", daemon=True)
        thread.start()
        thread.join(RESOLVE_S)
    return found


@functools.lru_cache(maxsize=256)
def resolve(host: str) -> str:
    """A host name as an address; a loopback address names this boot, the name itself if unknown.

    Two nodes that both call themselves 127.0.0.1 are two jobs, hence the boot id.
    """
    address = next(iter(_addresses(host)), host)
    is_local = not address or address == "::1" or address.startswith("127.")
    return f"local-{boot_id()[:8]}" if is_local else address
