"""The reader of pickles: plain data comes through, everything else is refused and never run."""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any

import pytest

from hangwatch_agent.dumps import pickles
from hangwatch_agent.errors import DumpError

PLAIN: list[Any] = [
    None,
    True,
    -5,
    2**62,
    1.5,
    "text",
    b"bytes",
    [1, [2, [3]]],
    (1, 2, 3, 4),
    {"a": [1, 2], "b": {"c": ("x", "y")}, 7: None},
    ["same"] * 300,
]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_data_is_read_as_it_was_written(value: Any, protocol: int) -> None:
    if isinstance(value, bytes) and protocol < 3:
        protocol = 3  # before, bytes were written as a call

    assert pickles.load(pickle.dumps(value, protocol)) == value


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /nowhere",)


@pytest.mark.parametrize(
    "value",
    [Runs(), Runs, {1, 2}, 1j, os.getcwd, bytearray(b"x")],
    ids=["object", "class", "set", "complex", "function", "bytearray"],
)
def test_whatever_needs_an_import_or_a_call_is_refused(value: Any) -> None:
    with pytest.raises(DumpError, match="opcode"):
        pickles.load(pickle.dumps(value))


def doubled(times: int, make: bytes) -> bytes:
    """A value that holds the one before it twice, and so on; the memo keeps each."""
    data = b"K\x01\x94"
    for number in range(times):
        data += b"0(h" + bytes([number]) + b"h" + bytes([number]) + make + b"\x94"
    return data


def test_shared_tuples_as_a_key_are_refused_at_once() -> None:
    with pytest.raises(DumpError, match="key"):
        pickles.load(b"\x80\x04" + doubled(200, b"t") + b"0}h\xc8K\x01s.")


def test_lists_that_hold_each_other_cost_their_opcodes_only() -> None:
    found = pickles.load(b"\x80\x04" + doubled(200, b"l") + b".")
    circle = pickles.load(b"\x80\x02]q\x00h\x00a.")

    assert isinstance(found, list)
    assert len(found) == 2
    assert found[0] is found[1]
    assert isinstance(circle, list)
    assert circle[0] is circle


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"K",
        b"t.",
        b"0.",
        b"h\x05.",
        b"(.",
        b"(q\x00.",
        b"K\x01K\x02.",
        b"]K\x01s.",
        b"}K\x01a.",
        b"}(K\x01u.",
        b"}]K\x01s.",
        b"I12x\n.",
        b"L" + b"9" * 400 + b"L\n.",
        b"\x8a\xff" + b"\x01" * 255 + b".",
        b"\x8b\xff\xff\xff\x7f.",
        b"X\xff\xff\xff\xffabc.",
        b"\x8d" + b"\xff" * 8 + b".",
        b"T\xff\xff\xff\xff.",
    ],
    ids=repr,
)
def test_broken_pickle_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(DumpError):
        pickles.load(data)


@pytest.mark.parametrize(
    ("limit", "data"),
    [
        ("MAX_OPCODES", b"(" + b"N0" * 50 + b"N."),
        ("MAX_STACK", b"N" * 50 + b"."),
        ("MAX_MEMO", b"N" + b"\x94" * 50 + b"."),
        ("MAX_BYTES", b"N" * 50),
        ("MAX_TEXT", b"X" + struct.pack("<I", 50) + b"x" * 50 + b"."),
    ],
)
def test_each_limit_holds(limit: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, limit, 20)

    with pytest.raises(DumpError):
        pickles.load(data)


def test_time_is_limited_as_well() -> None:
    with pytest.raises(DumpError, match="took more"):
        pickles.load(b"N0" * 10_000 + b"N.", timeout_s=-1.0)


def test_numbers_whose_hashes_collide_are_no_keys() -> None:
    collides = 2**61 - 1  # a multiple of it hashes to 0, so that each new key is compared with all
    data = b"\x80\x02}" + b"\x8a\x08" + collides.to_bytes(8, "little") + b"Ns."

    with pytest.raises(DumpError, match="32 bits"):
        pickles.load(data)
