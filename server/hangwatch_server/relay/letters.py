"""What servers say to each other over Redis: packed structs and their encoding, no behaviour.

Servers of two versions run side by side during an upgrade: a letter of a kind that is not known
here is skipped, and so is a field. Frames of agents travel inside as they came.
"""

from __future__ import annotations

import zlib
from typing import TypeVar

import msgspec

from hangwatch_agent import wire

WORTH_PACKING = 4096  # bytes; below this, packing costs more than it saves
_LEVEL = 1  # of 9: the names of fields alone are most of a heartbeat


class LetterError(Exception):
    """A letter that cannot be read."""


class Joined(msgspec.Struct, frozen=True, tag="joined"):
    """An agent is connected to the sender."""

    node: str
    hello: bytes
    connected_s: float  # for how long
    clock_ahead_s: float | None = None
    age_s: float = 0.0


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """A heartbeat of a node that the sender holds."""

    node: str
    frame: bytes
    age_s: float = 0.0


class Left(msgspec.Struct, frozen=True, tag="left"):
    """The sender no longer holds this node."""

    node: str
    is_moving: bool = False  # it was asked to connect to another server


class Part(msgspec.Struct, frozen=True, tag="part"):
    """A part of a capture that is durable; whoever asked for it may wait for it."""

    node: str
    frame: bytes
    age_s: float = 0.0


class Looks(msgspec.Struct, frozen=True, tag="looks"):
    node: str
    frame: bytes
    age_s: float = 0.0


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """An event of the bus."""

    topic: str
    data: dict[str, str]


class Whole(msgspec.Struct, frozen=True, tag="whole"):
    """Ends the whole state that somebody asked for: these are all nodes that the sender holds.

    It lies in the batches after the one with number `since`.
    """

    nodes: tuple[str, ...]
    since: int


Letter = Joined | Beat | Left | Part | Looks | Changed | Whole
AGED = (Joined, Beat, Part, Looks)


class Batch(msgspec.Struct, frozen=True):
    """Letters in the order in which they were written; `number` rises by one."""

    replica: str
    number: int
    letters: tuple[msgspec.Raw, ...]


class Call(msgspec.Struct, frozen=True):
    """I am here, and `number` was my last batch."""

    replica: str
    number: int
    is_leaving: bool = False


class Want(msgspec.Struct, frozen=True, tag="want"):
    """Send the whole state of your nodes, `replica` has missed something."""

    replica: str


class Command(msgspec.Struct, frozen=True, tag="command"):
    """Send this to the agent of a node that you hold, and say how it went."""

    replica: str
    id: str
    node: str
    frame: bytes


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    id: str
    why_not: str = ""


Note = Want | Command | Answer

T = TypeVar("T")
_encoder = msgspec.msgpack.Encoder()
# msgspec's types cannot express a decoder of a union.
_letters: msgspec.msgpack.Decoder[Letter] = msgspec.msgpack.Decoder(Letter)
_notes: msgspec.msgpack.Decoder[Note] = msgspec.msgpack.Decoder(Note)
_batches = msgspec.msgpack.Decoder(Batch)
_calls = msgspec.msgpack.Decoder(Call)
_hellos = msgspec.msgpack.Decoder(wire.Hello)
# A whole state may be larger than any frame that an agent may send.
_heartbeats = msgspec.msgpack.Decoder(wire.Heartbeat)
_parts = msgspec.msgpack.Decoder(wire.CapturePart)
_samples = msgspec.msgpack.Decoder(wire.Samples)
_commands: msgspec.msgpack.Decoder[wire.TakeCapture | wire.AskRas] = msgspec.msgpack.Decoder(
    wire.TakeCapture | wire.AskRas
)


def encode(said: Letter | Batch | Call | Note) -> bytes:
    return _encoder.encode(said)


def pack(data: bytes) -> bytes:
    """One byte that says whether the rest is compressed."""
    if len(data) < WORTH_PACKING:
        return b"\0" + data
    return b"\1" + zlib.compress(data, _LEVEL)


def batch(data: bytes) -> Batch:
    try:
        plain = zlib.decompress(data[1:]) if data[:1] == b"\1" else data[1:]
    except zlib.error as error:
        raise LetterError(f"a batch cannot be unpacked: {error}") from error
    return _read(_batches, plain)


def letter(data: msgspec.Raw) -> Letter:
    return _read(_letters, data)


def call(data: bytes) -> Call:
    return _read(_calls, data)


def note(data: bytes) -> Note:
    return _read(_notes, data)


def hello(data: bytes) -> wire.Hello:
    return _read(_hellos, data)


def heartbeat(data: bytes) -> wire.Heartbeat:
    return _read(_heartbeats, data)


def part(data: bytes) -> wire.CapturePart:
    return _read(_parts, data)


def samples(data: bytes) -> wire.Samples:
    return _read(_samples, data)


def command(data: bytes) -> wire.TakeCapture | wire.AskRas:
    """One of the two commands that a server may have another one send."""
    return _read(_commands, data)


def _read(decoder: msgspec.msgpack.Decoder[T], data: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LetterError(f"a letter of another server cannot be read: {error}") from error
