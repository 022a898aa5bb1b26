"""No number of any frame is larger than the database takes, or one that cannot be read back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from hangwatch_agent import wire

FRAMES = (wire.Hello, wire.Heartbeat, wire.CapturePart, wire.Samples)
Path = tuple[str | int, ...]
LARGEST = 2**63 - 1


def example(kind: inspect.Type) -> Any:
    """The least that is read as this type, with one item in each list and nothing left out."""
    match kind:
        case inspect.StructType():
            fields = [(item.encode_name, example(item.type)) for item in kind.fields]
            named = {kind.tag_field: kind.tag} if kind.tag_field else {}
            return [value for _, value in fields] if kind.array_like else named | dict(fields)
        case inspect.UnionType():
            return example(next(t for t in kind.types if not isinstance(t, inspect.NoneType)))
        case inspect.VarTupleType():
            return [example(kind.item_type)]
        case inspect.TupleType():
            return [example(item) for item in kind.item_types]
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.StrType():
            return ""
        case inspect.BoolType():
            return False
        case inspect.IntType():
            return 0
        case inspect.FloatType():
            return 0.5
    raise AssertionError(kind)


def numbers(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where in an example there are numbers."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from numbers(item, (*path, key))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield (*path, key)


def with_number(frame: type[msgspec.Struct], path: Path, number: float) -> bytes:
    whole = example(inspect.type_info(frame))
    at = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = number
    return msgspec.msgpack.encode(whole)


PLACES = [(frame, path) for frame in FRAMES for path in numbers(example(inspect.type_info(frame)))]
TOO_LARGE = st.integers(2**63, 2**64 - 1) | st.sampled_from([math.nan, math.inf, -math.inf, 1e19])


def test_every_number_of_a_frame_is_tried() -> None:
    names = {path[-1] for _, path in PLACES}

    assert {"dropped", "step", "pid", "cpu_s", "io_rate", "seq", "timeout_s", "thread_id"} <= names


@given(st.sampled_from(PLACES), TOO_LARGE)
def test_number_that_cannot_be_stored_is_refused_wherever_it_stands(
    place: tuple[type[msgspec.Struct], Path], number: float
) -> None:
    with pytest.raises(wire.WireError):
        wire.decode_from_agent(with_number(*place, number))


@pytest.mark.parametrize("number", [math.nan, 2**64 - 1])
def test_each_single_number_is_refused(number: float) -> None:
    for place in PLACES:
        with pytest.raises(wire.WireError):
            wire.decode_from_agent(with_number(*place, number))


@pytest.mark.parametrize("frame", FRAMES)
def test_largest_number_passes(frame: type[msgspec.Struct]) -> None:
    for path in numbers(example(inspect.type_info(frame))):
        is_fraction = str(path[-1]).endswith(("_s", "_share", "_w", "_c", "rate", "utilisation"))
        largest = wire.MAX_NUMBER if is_fraction else LARGEST

        assert wire.decode_from_agent(with_number(frame, path, largest))
