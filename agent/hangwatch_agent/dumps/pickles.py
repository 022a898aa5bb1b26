"""Reads plain data out of a pickle without running it: no imports, no calls, no classes.

A small machine of its own knows the opcodes that write numbers, texts, lists, tuples and dicts, and
refuses every other before anything else happens. Python's unpickler, even a restricted one, hashes
and compares what it builds: 250 bytes of nested tuples used as a key keep it busy for ever. Here
keys are texts and numbers alone, and nothing that was built is ever walked through as a whole, so
that containers which hold each other a million times cost a million references and no more.
https://docs.python.org/3/library/pickletools.html tells what each opcode does.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hangwatch_agent.errors import DumpError

MAX_BYTES = 64 * 1024 * 1024
MAX_OPCODES = 4_000_000  # a dump of 20,000 entries has a tenth
MAX_STACK = 200_000
MAX_MEMO = 500_000
MAX_TEXT = 64 * 1024
MAX_KEY = 2**31  # of numbers: hashes of larger ones can be made to collide
MAX_LONG = 16  # bytes of a number; torch writes eight
MAX_DIGITS = 20
TIMEOUT_S = 10.0
_LOOK_EVERY = 4096

# What a pickle of plain data is made of. A list or dict is whatever the pickle puts into it.
Plain = (
    None
    | bool
    | int
    | float
    | str
    | bytes
    | list["Plain"]
    | tuple["Plain", ...]
    | dict[str | int, "Plain"]
)


class _Mark:
    """Where a run of items begins on the stack."""


_MARK = _Mark()


@dataclass(slots=True)
class _Machine:
    data: bytes
    at: int = 0
    stack: list[object] = field(default_factory=list)
    memo: dict[int, object] = field(default_factory=dict)

    def take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise DumpError("the dump ends early")
        found = self.data[self.at : end]
        self.at = end
        return found

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + MAX_DIGITS + 3)
        if end < 0:
            raise DumpError("a number in the dump is too long")
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def unpack(self, shape: struct.Struct) -> int:
        return int(shape.unpack(self.take(shape.size))[0])

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        if not self.stack or self.stack[-1] is _MARK:
            raise DumpError("the dump takes more than it has put down")
        return self.stack.pop()

    def top(self) -> object:
        if not self.stack:
            raise DumpError("the dump speaks of nothing")
        return self.stack[-1]

    def pop_to_mark(self) -> list[object]:
        """The items above the last mark; each is moved once, so all of them cost what they are."""
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                found = self.stack[index + 1 :]
                del self.stack[index:]
                return found
        raise DumpError("the dump closes what it has not opened")

    def remember(self, number: int) -> None:
        if len(self.memo) >= MAX_MEMO:
            raise DumpError("the dump remembers too much")
        value = self.top()
        if value is _MARK:
            raise DumpError("the dump remembers no value")
        self.memo[number] = value

    def recall(self, number: int) -> None:
        if number not in self.memo:
            raise DumpError("the dump recalls what it has not remembered")
        self.push(self.memo[number])


def load(data: bytes, *, timeout_s: float = TIMEOUT_S) -> Plain:
    """The value that a pickle of plain data holds; raise DumpError for anything else."""
    if len(data) > MAX_BYTES:
        raise DumpError(f"the dump of {len(data)} bytes is over the limit of {MAX_BYTES}")
    machine = _Machine(data)
    try:
        return _run(machine, timeout_s)
    except DumpError as error:
        raise DumpError(f"{error} (at byte {machine.at})") from None


def _run(machine: _Machine, timeout_s: float) -> Plain:
    end_s = time.monotonic() + timeout_s
    for count in range(MAX_OPCODES):
        code = machine.take(1)[0]
        if code == _STOP:
            return _result(machine)
        step = _STEPS.get(code)
        if step is None:
            raise DumpError(f"the dump has opcode {code:#04x}, which plain data does not need")
        step(machine)
        if len(machine.stack) > MAX_STACK:
            raise DumpError("the dump is nested too deep or has too long a run of items")
        if count % _LOOK_EVERY == 0 and time.monotonic() > end_s:
            raise DumpError(f"reading the dump took more than {timeout_s:g} s")
    raise DumpError(f"the dump has more than {MAX_OPCODES} opcodes")


def _result(machine: _Machine) -> Plain:
    value = machine.pop()
    if machine.stack:
        raise DumpError("the dump holds more than one value")
    return value  # type: ignore[return-value]  # only the steps below put values down


def _text(machine: _Machine, size: int) -> None:
    if not 0 <= size <= MAX_TEXT:
        raise DumpError(f"a text of {size} bytes in the dump is over the limit")
    machine.push(machine.take(size).decode("utf-8", "replace"))


def _bytes(machine: _Machine, size: int) -> None:
    if not 0 <= size <= MAX_TEXT:
        raise DumpError(f"a value of {size} bytes in the dump is over the limit")
    machine.push(machine.take(size))


def _long(machine: _Machine) -> None:
    size = machine.take(1)[0]
    if size > MAX_LONG:
        raise DumpError(f"a number of {size} bytes in the dump is over the limit")
    machine.push(int.from_bytes(machine.take(size), "little", signed=True))


def _decimal(machine: _Machine) -> None:
    text = machine.line().removesuffix(b"L")
    if text in (b"00", b"01"):  # protocol 0 writes truth values so
        machine.push(text == b"01")
        return
    try:
        machine.push(int(text))
    except ValueError as error:
        raise DumpError("a number in the dump is none") from error


def _append(machine: _Machine) -> None:
    value = machine.pop()
    _list(machine).append(value)


def _appends(machine: _Machine) -> None:
    values = machine.pop_to_mark()
    _list(machine).extend(values)


def _set_item(machine: _Machine) -> None:
    value, key = machine.pop(), machine.pop()
    _dict(machine)[_key(key)] = value


def _set_items(machine: _Machine) -> None:
    items = machine.pop_to_mark()
    _fill(_dict(machine), items)


def _new_dict(machine: _Machine) -> None:
    found: dict[str | int, object] = {}
    _fill(found, machine.pop_to_mark())
    machine.push(found)


def _fill(target: dict[str | int, object], items: list[object]) -> None:
    if len(items) % 2:
        raise DumpError("a key in the dump has no value")
    for index in range(0, len(items), 2):
        target[_key(items[index])] = items[index + 1]


def _key(value: object) -> str | int:
    """Only what hashes in a moment may be a key."""
    if isinstance(value, str) or (isinstance(value, int) and -MAX_KEY <= value < MAX_KEY):
        return value
    raise DumpError("a key in the dump is neither text nor a number of 32 bits")


def _list(machine: _Machine) -> list[object]:
    target = machine.top()
    if not isinstance(target, list):
        raise DumpError("the dump appends to what is no list")
    return target


def _dict(machine: _Machine) -> dict[str | int, object]:
    target = machine.top()
    if not isinstance(target, dict):
        raise DumpError("the dump sets items of what is no dict")
    return target


def _tuple(size: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        items = [machine.pop() for _ in range(size)]
        machine.push(tuple(reversed(items)))

    return step


def _skip(size: int) -> Callable[[_Machine], None]:
    return lambda machine: (machine.take(size), None)[1]


def _constant(value: object) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(value)


def _number(shape: str) -> Callable[[_Machine], None]:
    packed = struct.Struct(shape)
    return lambda machine: machine.push(machine.unpack(packed))


def _sized(step: Callable[[_Machine, int], None], shape: str) -> Callable[[_Machine], None]:
    packed = struct.Struct(shape)
    return lambda machine: step(machine, machine.unpack(packed))


_STOP = ord(".")
_FLOAT = struct.Struct(">d")
_STEPS: dict[int, Callable[[_Machine], None]] = {
    0x80: _skip(1),  # PROTO
    0x95: _skip(8),  # FRAME: only a hint of how far to read ahead
    ord("("): _constant(_MARK),
    ord("0"): lambda machine: (machine.pop(), None)[1],
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("I"): _decimal,
    ord("L"): _decimal,
    ord("J"): _number("<i"),
    ord("K"): _number("<B"),
    ord("M"): _number("<H"),
    0x8A: _long,
    ord("G"): lambda machine: machine.push(_FLOAT.unpack(machine.take(8))[0]),
    0x8C: _sized(_text, "<B"),
    ord("X"): _sized(_text, "<I"),
    0x8D: _sized(_text, "<Q"),
    ord("C"): _sized(_bytes, "<B"),
    ord("B"): _sized(_bytes, "<I"),
    ord("U"): _sized(_bytes, "<B"),
    ord("T"): _sized(_bytes, "<i"),
    ord("]"): lambda machine: machine.push([]),
    ord("a"): _append,
    ord("e"): _appends,
    ord("l"): lambda machine: machine.push(machine.pop_to_mark()),
    ord(")"): _constant(()),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("t"): lambda machine: machine.push(tuple(machine.pop_to_mark())),
    ord("}"): lambda machine: machine.push({}),
    ord("s"): _set_item,
    ord("u"): _set_items,
    ord("d"): _new_dict,
    ord("q"): lambda machine: machine.remember(machine.take(1)[0]),
    ord("r"): _sized(_Machine.remember, "<I"),
    0x94: lambda machine: machine.remember(len(machine.memo)),
    ord("h"): lambda machine: machine.recall(machine.take(1)[0]),
    ord("j"): _sized(_Machine.recall, "<I"),
}
