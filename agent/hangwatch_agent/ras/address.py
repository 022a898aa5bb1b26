"""Where the RAS thread of a rank listens, as its environment says, and whether it may be asked.

A job names the address, so it is not followed beyond this node, and whoever listens there must run
as the job's user: a stranger's answer would otherwise name culprits in somebody else's job.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from hangwatch_agent.errors import RasError
from hangwatch_agent.ras.protocol import Endpoint

PORT = 28028
MAX_TABLE = 16 * 1024 * 1024  # 100,000 sockets
_LISTEN = b"0A"
_OFF = frozenset({"0"})


def endpoint(environ: Mapping[str, str]) -> Endpoint | None:
    """Where to ask, by a rank's environment; None where NCCL's RAS is switched off.

    Raises RasError for an address that is not of this node.
    """
    if environ.get("NCCL_RAS_ENABLE", "1").strip() in _OFF:
        return None
    host, port = _split(environ.get("NCCL_RAS_ADDR", ""))
    if host not in ("localhost", socket.gethostname()) and not _is_of_this_node(host):
        raise RasError(f"NCCL_RAS_ADDR names {host[:60]!r}, which is no address of this node")
    return Endpoint("127.0.0.1" if host == "localhost" else host, port)


def listeners(proc_root: Path, pid: int, port: int) -> frozenset[int]:
    """The uids that listen on this port in the network namespace of a process."""
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            with (proc_root / str(pid) / "net" / name).open("rb") as table:
                found |= _listening(table.read(MAX_TABLE), port)
        except OSError:
            continue
    return frozenset(found)


def shares_network(proc_root: Path, pid: int) -> bool:
    """Whether a process is in the agent's own network namespace; only then can it be reached."""
    try:
        theirs = os.stat(proc_root / str(pid) / "ns" / "net")
        ours = os.stat(proc_root / "self" / "ns" / "net")
    except OSError:
        return True  # not allowed to know: the attempt will tell
    return theirs.st_ino == ours.st_ino


def _split(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `[V6]:PORT`, or NCCL's defaults for what is not given."""
    host, _, port = text.strip().rpartition(":")
    host = host.strip("[]") or "localhost"
    if not text.strip():
        return "localhost", PORT
    if not port.isdecimal() or not 0 < int(port[:6]) < 65_536:
        raise RasError(f"NCCL_RAS_ADDR {text[:60]!r} is no address and port")
    return host, int(port)


def _is_of_this_node(host: str) -> bool:
    """Binding tells without sending anything: it succeeds for own addresses alone."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_unspecified or address.is_multicast:
        return False
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _listening(table: bytes, port: int) -> set[int]:
    """proc_net_tcp: local address and port in hexadecimal, state, …, uid as the eighth field."""
    suffix = b":%04X" % port
    found: set[int] = set()
    for row in table.splitlines()[1:]:
        fields = row.split(maxsplit=8)
        if len(fields) > 7 and fields[1].endswith(suffix) and fields[3] == _LISTEN:
            found.add(int(fields[7]))
    return found
