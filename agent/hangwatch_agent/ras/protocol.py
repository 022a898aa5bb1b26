"""The conversation with one RAS endpoint: a line each way, then one answer up to the end of stream.

Client: `CLIENT PROTOCOL 2`, `TIMEOUT 5`, `SET FORMAT json`, `VERBOSE STATUS`. NCCL answers with
`SERVER PROTOCOL n`, `OK`, `OK` (an error line before 2.28.7, which tells text), and the status.
It asks all processes of the job for it, and gives those that do not answer `TIMEOUT` seconds.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hangwatch_agent.errors import RasError

PROTOCOL = 2  # of NCCL 2.24 to 2.30; the server of another version is asked all the same
LEG_TIMEOUT_S = 5  # NCCL's own default; it adds as much again for the whole job
ANSWER_TIMEOUT_S = 15.0
GREETING_TIMEOUT_S = 2.0  # a stopped process still accepts connections, and never says a word
MAX_ANSWER = 64 * 1024 * 1024  # 500 bytes a member: 130,000 of them
MAX_LINE = 1024


@dataclass(frozen=True)
class Endpoint:
    """Where a RAS thread listens for clients."""

    host: str
    port: int


@dataclass(frozen=True)
class Answer:
    data: bytes
    is_json: bool


async def ask(endpoint: Endpoint, timeout_s: float = ANSWER_TIMEOUT_S) -> Answer:
    """The job's status; raise RasError when it does not come whole and in time."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _talk(endpoint)
    except TimeoutError as error:
        raise RasError(f"NCCL RAS did not answer within {timeout_s:g} s") from error
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        raise RasError(f"NCCL RAS cannot be asked: {error}") from error


async def _talk(endpoint: Endpoint) -> Answer:
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, limit=MAX_LINE)
    try:
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            greeting = await _command(reader, writer, f"CLIENT PROTOCOL {PROTOCOL}")
        if not greeting.upper().startswith("SERVER PROTOCOL "):
            raise RasError("what listens at the address of NCCL RAS is something else")
        await _command(reader, writer, f"TIMEOUT {LEG_TIMEOUT_S}")
        is_json = (await _command(reader, writer, "SET FORMAT json")).upper() == "OK"
        writer.write(b"VERBOSE STATUS\n")
        await writer.drain()
        return Answer(await _rest(reader), is_json)
    finally:
        # A half-read answer is NCCL's to throw away: it drops what a closed client did not take.
        writer.transport.abort()


async def _command(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, command: str) -> str:
    writer.write(f"{command}\n".encode())
    await writer.drain()
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise RasError("NCCL RAS closed the connection")
    return line.decode("latin-1").strip()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await reader.read(1 << 20):
        size += len(chunk)
        if size > MAX_ANSWER:
            raise RasError(f"NCCL RAS answered more than {MAX_ANSWER} bytes")
        parts.append(chunk)
    return b"".join(parts)
