"""Runs one command with a document on its stdin: no shell, bounded in time and output.

The command sees a small environment of its own. The server's holds secrets (the database's address,
tokens), and its settings mean something else to `hangwatch` when the command calls it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hangwatch_server.errors import HangwatchError
from hangwatch_server.model.actions import ActionState

OUTPUT_BYTES = 16 * 1024  # the end: what failed is said last
GRACE_S = 5.0  # between SIGTERM and SIGKILL
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SLURM_CONF", "KUBECONFIG")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    state: ActionState
    exit_code: int | None
    output: str


def words(text: str) -> tuple[str, ...]:
    """The command's words; raise HangwatchError when they cannot be read or run here."""
    try:
        found = tuple(shlex.split(text))
    except ValueError as error:
        raise HangwatchError(
            f"--action-command cannot be read: {error}; write it as a shell would take it"
        ) from error
    if found and shutil.which(found[0]) is None:
        raise HangwatchError(
            f"--action-command: {found[0]} is no program that can be run here; give its full path"
        )
    return found


async def run(
    command: Sequence[str], document: bytes, environ: Mapping[str, str], timeout_s: float
) -> Ended:
    """Run it to its end, or end it; what it started goes with it."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    reading, writing = os.pipe()
    output = await _Output.of(reading)
    try:
        with tempfile.TemporaryFile() as told:
            told.write(document)
            told.seek(0)
            process = await asyncio.create_subprocess_exec(
                *command,
                env={**inherited, **environ},
                cwd="/",
                stdin=told,
                stdout=writing,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        output.close()
        words = f"{command[0]} cannot be run: {error.strerror or error}"
        return Ended(state=ActionState.FAILED, exit_code=None, output=words)
    finally:
        os.close(writing)
    try:
        is_in_time = await _ended_in(process, timeout_s)
    finally:
        _signal(process, signal.SIGKILL)  # what it left behind, and when the server stops, itself
        text = await output.text()
    if not is_in_time:
        return Ended(state=ActionState.TIMED_OUT, exit_code=None, output=text)
    code = process.returncode
    state = ActionState.DONE if code == 0 else ActionState.FAILED
    return Ended(state=state, exit_code=code, output=text)


async def _ended_in(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    """Wait for the end; after the time, ask for it and then force it."""
    for patience_s, is_late in ((timeout_s, False), (GRACE_S, True)):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await process.wait()
                return not is_late
        _signal(process, signal.SIGTERM)
    _signal(process, signal.SIGKILL)
    await process.wait()
    return False


class _Output:
    """The end of what comes through a pipe of our own.

    Not asyncio's pipe of the process: with it `wait` also waits for children that keep it open.
    """

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        self._transport = transport
        self._kept = bytearray()
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def of(cls, descriptor: int) -> _Output:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        return cls(reader, transport)

    async def text(self) -> str:
        """All of it once the pipe is closed, at the latest after a second."""
        await asyncio.wait({self._reading}, timeout=1.0)
        self.close()
        return bytes(self._kept).decode(errors="replace")

    def close(self) -> None:
        self._reading.cancel()
        self._transport.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while piece := await reader.read(OUTPUT_BYTES):
            self._kept += piece
            del self._kept[:-OUTPUT_BYTES]


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """To the command's own session, so that what it started ends too."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
