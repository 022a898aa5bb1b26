"""Ranks under a launcher that does not look after them, as srun without --kill-on-bad-exit.

torchrun ends all ranks once one is gone; then nobody is left who waits. The connections of a rank
that goes must outlive it as well: gloo raises on a closed one, where NCCL would go on waiting.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time


def is_launcher() -> bool:
    return "RANK" not in os.environ


def launch(ranks: int, *, reaps: bool = True) -> None:
    """Run this program once per rank until all are gone; unreaped, an ended rank is a zombie."""
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": str(ranks),
    }
    processes = [
        subprocess.Popen([sys.executable, *sys.argv], env={**environment, "RANK": str(rank)})
        for rank in range(ranks)
    ]
    if not reaps:
        processes[0].wait()
    for process in processes:
        while process.poll() is None:
            [other.poll() for other in processes]
            time.sleep(0.2)


def leave_connections_open() -> None:
    """Fork a child that keeps this rank's sockets, as loader workers do, while the launcher is."""
    launcher = os.getppid()
    if os.fork():
        return
    while _exists(launcher):
        time.sleep(1)
    os._exit(0)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _free_port() -> int:
    """Below the ephemeral ports: nobody takes it before the ranks do."""
    while True:
        port = secrets.choice(range(20_000, 30_000))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
