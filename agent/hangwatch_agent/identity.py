"""Who this node is: boot id, version, and addresses that all nodes of a job agree on."""

from __future__ import annotations

import functools
import importlib.metadata
import socket
import time
from pathlib import Path

from hangwatch_agent.spool import Clock


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


@functools.lru_cache(maxsize=256)
def resolve(host: str) -> str:
    """A host name as an address; a loopback address names this boot, the name itself if unknown.

    Two nodes that both call themselves 127.0.0.1 are two jobs, hence the boot id.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except OSError:
        found = []
    addresses = sorted(str(item[4][0]) for item in found)
    address = addresses[0] if addresses else host
    is_local = not address or address == "::1" or address.startswith("127.")
    return f"local-{boot_id()[:8]}" if is_local else address
