"""Letters that wait to be published, oldest first, and how long each has waited."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from hangwatch_server.relay import letters
from hangwatch_server.relay.letters import Letter

MAX_BYTES = 64 * 1024 * 1024
BATCH_BYTES = 1024 * 1024
_ENVELOPE_BYTES = 64


class Outbox:
    """Closed until somebody can be told: what is put in before is dropped, and so is too much."""

    def __init__(self, clock_s: Callable[[], float], max_bytes: int = MAX_BYTES) -> None:
        self._clock_s, self._max_bytes = clock_s, max_bytes
        self._letters: deque[tuple[float, Letter]] = deque()
        self._is_open = False
        self._filled, self._has_room = asyncio.Event(), asyncio.Event()
        self._has_room.set()
        self.size_bytes = 0
        self.is_lossy = False  # something was dropped since it was opened

    def open(self) -> None:
        self._is_open, self.is_lossy = True, False

    def close(self) -> None:
        """Drop everything: whoever hears us again gets our whole state."""
        self._is_open = False
        self._letters.clear()
        self.size_bytes = 0
        self._filled.clear()
        self._has_room.set()

    def put(self, letter: Letter) -> None:
        """Never blocks, never fails."""
        if not self._is_open:
            return
        size = _size(letter)
        if self.size_bytes + size > self._max_bytes:
            self.is_lossy = True
            return
        self.size_bytes += size
        self._letters.append((self._clock_s(), letter))
        self._filled.set()
        if self.size_bytes > BATCH_BYTES:
            self._has_room.clear()

    def take(self) -> tuple[msgspec.Raw, ...]:
        """The letters of one batch, encoded, with their ages as of now."""
        now_s, taken, size = self._clock_s(), [], 0
        while self._letters and size < BATCH_BYTES:
            put_s, letter = self._letters.popleft()
            size += _size(letter)
            if isinstance(letter, letters.AGED):
                age_s = letter.age_s + max(0.0, now_s - put_s)
                letter = msgspec.structs.replace(letter, age_s=age_s)
            taken.append(msgspec.Raw(letters.encode(letter)))
        self.size_bytes -= size
        if not self._letters:
            self._filled.clear()
        if self.size_bytes <= BATCH_BYTES:
            self._has_room.set()
        return tuple(taken)

    async def room(self) -> None:
        """Until less than a batch waits: for whoever has much to say at once."""
        await self._has_room.wait()

    async def wait(self, timeout_s: float) -> None:
        """Until there is a letter, at most so long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._filled.wait()
        except TimeoutError:
            return


def _size(letter: Letter) -> int:
    frame = getattr(letter, "frame", b"")
    return len(frame) + _ENVELOPE_BYTES
