"""The text of the lines that a rank stands at, for captures. Knows no jobs and no server.

Only the user's own code: what an installed package says at a line everybody can look up. A process
of its own reads the files, with the rights of the rank's user (see `source_reader`). The files may
lie on the very mount whose death is the hang: one that does not answer costs a capture four seconds
once, is left behind, and no other is started for a minute, nor as long as it cannot be ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hangwatch_agent import redaction, wire
from hangwatch_agent.process import Identity

AROUND = 2  # lines before and after
TIMEOUT_S = 4.0
KILL_S = 0.5
PAUSE_S = 60.0
PER_STACK = 8  # innermost frames of one stack
MAX_OUTPUT = 1024 * 1024
_READER = Path(__file__).with_name("source_reader.py")
# An interpreter's own library, an installed package, or no file at all.
_NOT_OWN = re.compile(r"(^|/)(lib|lib64)/python\d[\d.]*t?/|(^|/)(site|dist)-packages/|^[^/]")
_decoder = msgspec.json.Decoder(tuple[wire.Source, ...])


class Sources:
    """Reads sources on this node, for one rank at a time."""

    def __init__(
        self, *, is_on: bool, reader: Path = _READER, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._is_on, self._reader, self._timeout_s = is_on, reader, timeout_s
        self._turn = asyncio.Lock()
        self._again_at_s = 0.0
        self._stuck: asyncio.subprocess.Process | None = None

    async def of(
        self, identity: Identity, stacks: Sequence[wire.ProcessStacks]
    ) -> tuple[wire.Source, ...]:
        """What the lines of these stacks say; () where that cannot be read."""
        places = places_of(stacks)
        if not self._is_on or not places:
            return ()
        question = json.dumps(
            {
                "pid": identity.pid,
                "start_ticks": identity.start_ticks,
                "around": AROUND,
                "places": places,
            }
        )
        async with self._turn:
            if not self._may_ask():
                return ()
            return _decoded(await self._answer(question.encode()))

    def _may_ask(self) -> bool:
        is_stuck = self._stuck is not None and self._stuck.returncode is None
        return not is_stuck and asyncio.get_running_loop().time() >= self._again_at_s

    async def _answer(self, question: bytes) -> bytes:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(self._reader),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},  # the agent's holds its token
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                output, _ = await process.communicate(question)
            return output
        except TimeoutError:
            self._again_at_s = asyncio.get_running_loop().time() + PAUSE_S
            return b""
        finally:
            await self._end(process)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Kill it; one that waits for a dead mount cannot be, and nobody waits for it."""
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        self._stuck = process
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_S):
                await process.wait()


def places_of(stacks: Sequence[wire.ProcessStacks]) -> list[tuple[str, int]]:
    """File and line of the innermost frames of the user's own code, each main thread's."""
    found: dict[tuple[str, int], None] = {}
    for process in stacks:
        frames = process.threads[0].frames if process.threads else ()
        own = [frame for frame in frames if frame.line > 0 and not _is_foreign(frame)]
        found.update(((frame.file, frame.line), None) for frame in own[:PER_STACK])
    return list(found)[: wire.MAX_SOURCES]


def _is_foreign(frame: wire.Frame) -> bool:
    return frame.is_native or _NOT_OWN.search(frame.file) is not None


def _decoded(output: bytes) -> tuple[wire.Source, ...]:
    try:
        found = _decoder.decode(output[:MAX_OUTPUT])
    except msgspec.DecodeError:  # it ended without an answer
        return ()
    return tuple(msgspec.structs.replace(one, lines=_redacted(one.lines)) for one in found)


def _redacted(lines: tuple[str, ...]) -> tuple[str, ...]:
    """As one text, since a key may be written over several lines."""
    found = redaction.text("\n".join(lines)).split("\n")
    # What went with its line ends leaves a line behind that says so.
    return tuple(found + [redaction.MARK] * (len(lines) - len(found)))
