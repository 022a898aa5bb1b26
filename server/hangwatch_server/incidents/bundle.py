"""All that is known of an incident as one zip file, made while it is sent.

Bounded in captures and bytes, and it says what it left out. Names in it are our own: nothing that a
job can choose becomes part of a path.
"""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from collections.abc import AsyncIterator, Mapping

import msgspec

from hangwatch_server.captures import reading
from hangwatch_server.db import captures as rows
from hangwatch_server.db.engine import Database
from hangwatch_server.model import Capture

MAX_CAPTURES = 50  # the newest
MAX_PARTS_BYTES = 512 * 1024 * 1024  # before packing; 16,384 stacks are about 60 MB
PAGE_PARTS = 100
_README = """Everything that Hangwatch knows of one incident.

incident.txt             for people: verdict, culprits, path, evidence, limits, history, stacks
incident.json            the same incident as GET /api/v1/incidents/ID answers
moments.json             groups, last calls, processes, GPUs and nodes at suspicion, at
                         confirmation and at changes
captures/ID/capture.json which ranks answered, and why others did not
captures/ID/stacks.txt   the merged stacks
captures/ID/parts.jsonl  one line per rank: all threads' stacks, recorder entries, process state
"""


async def stream(
    db: Database, incident_id: str, documents: Mapping[str, bytes]
) -> AsyncIterator[bytes]:
    """The bytes of the zip; `documents` are its files beside the captures, by name."""
    sink = _Sink()
    taken = await rows.of_incident(db, incident_id, limit=500)
    left_out = [f"capture {one.id}: only the newest {MAX_CAPTURES} are here"
                for one in taken[:-MAX_CAPTURES]]  # fmt: skip
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {"README.txt": _README.encode(), **documents}.items():
            await asyncio.to_thread(archive.writestr, _safe(name), data)
            yield sink.taken()
        left_bytes = MAX_PARTS_BYTES
        for capture in taken[-MAX_CAPTURES:]:
            async for packed_bytes in _capture(db, archive, capture, left_bytes):
                left_bytes -= packed_bytes
                yield sink.taken()
            if left_bytes <= 0:
                left_out.append(f"capture {capture.id}: cut at {MAX_PARTS_BYTES} bytes in all")
        if left_out:
            archive.writestr("LEFT-OUT.txt", "\n".join(left_out) + "\n")
    yield sink.taken()


async def _capture(
    db: Database, archive: zipfile.ZipFile, capture: Capture, left_bytes: int
) -> AsyncIterator[int]:
    """Write one capture's files, giving after each step how many bytes went in."""
    found = await rows.find(db, capture.id)
    if found is None or left_bytes <= 0:
        return
    folder = f"captures/{_safe(capture.id)}"
    document = msgspec.json.format(msgspec.json.encode(found), indent=2)
    await asyncio.to_thread(archive.writestr, f"{folder}/capture.json", document)
    text = (await reading.text(db, found, native=found.native)).encode()
    await asyncio.to_thread(archive.writestr, f"{folder}/stacks.txt", text)
    yield len(document) + len(text)
    with archive.open(f"{folder}/parts.jsonl", "w") as file:
        after = -1
        while left_bytes > 0:
            page = await rows.parts_page(db, capture.id, after=after, limit=PAGE_PARTS)
            if not page:
                return
            after = page[-1].part.rank
            lines = b"".join(msgspec.json.encode(stored) + b"\n" for stored in page)
            await asyncio.to_thread(file.write, lines)
            left_bytes -= len(lines)
            yield len(lines)


class _Sink(io.RawIOBase):
    """Takes what the archive writes until it is sent; it cannot seek, so nothing is rewritten."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]  # any buffer, as zipfile writes
        self._held.append(piece)
        return len(piece)

    def taken(self) -> bytes:
        data = b"".join(self._held)
        self._held.clear()
        return data


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80]
