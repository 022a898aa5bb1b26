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
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**inherited, **environ},
            cwd="/",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        words = f"{command[0]} cannot be run: {error.strerror or error}"
        return Ended(state=ActionState.FAILED, exit_code=None, output=words)
    try:
        return await _followed(process, document, timeout_s)
    finally:
        _signal(process, signal.SIGKILL)  # also when the server stops meanwhile


async def _followed(
    process: asyncio.subprocess.Process, document: bytes, timeout_s: float
) -> Ended:
    kept = bytearray()
    talking = asyncio.create_task(_talk(process, document, kept))
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
            is_late = False
    except TimeoutError:
        is_late = True
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await process.wait()
        _signal(process, signal.SIGKILL)
        await process.wait()
    # A child that keeps the pipe open is not waited for: the command itself has ended.
    await asyncio.wait({talking}, timeout=1.0)
    talking.cancel()
    output = bytes(kept).decode(errors="replace")
    if is_late:
        return Ended(state=ActionState.TIMED_OUT, exit_code=None, output=output)
    code = process.returncode
    state = ActionState.DONE if code == 0 else ActionState.FAILED
    return Ended(state=state, exit_code=code, output=output)


async def _talk(process: asyncio.subprocess.Process, document: bytes, kept: bytearray) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    # A command that does not read its input has closed the pipe, which is its own affair.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(document)
        await process.stdin.drain()
    process.stdin.close()
    while piece := await process.stdout.read(OUTPUT_BYTES):
        kept += piece
        del kept[:-OUTPUT_BYTES]


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """To the command's own session, so that what it started ends too."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
