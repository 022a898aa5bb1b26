"""Leads connections from a port of this machine to one inside a network namespace.

The listening socket is made outside and keeps its network; the process that accepts runs inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from pathlib import Path


def listener(address: str, port: int) -> socket.socket:
    return socket.create_server((address, port))


def start(listening: socket.socket, namespace: Path, port: int) -> subprocess.Popen[bytes]:
    """Accept on `listening` and connect to `port` in `namespace`, until it is killed."""
    number = listening.fileno()
    command = ["nsenter", f"--net={namespace}", sys.executable, __file__, str(number), str(port)]
    return subprocess.Popen(command, pass_fds=[number], start_new_session=True)


async def _serve(listening: socket.socket, port: int) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copy(reader, back), _copy(there, writer))

    server = await asyncio.start_server(accept, sock=listening)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError), contextlib.closing(writer):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


if __name__ == "__main__":
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])))
