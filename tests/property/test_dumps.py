"""Whatever a job writes as a dump: its reader ends, imports nothing, raises only its own error."""

from __future__ import annotations

import contextlib
import pickle
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent.dumps import pickles, reading
from hangwatch_agent.errors import DumpError

PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
ENTRY = st.dictionaries(
    st.sampled_from(
        ["process_group", "collective_seq_id", "profiling_name", "retired", "input_sizes", "state"]
    ),
    PLAIN,
)
DUMPS = st.builds(lambda entries, config: {"entries": entries, "pg_config": config},
                  st.lists(ENTRY, max_size=4), PLAIN)  # fmt: skip
OPCODES = st.lists(
    st.sampled_from([bytes([code]) for code in pickles._STEPS] + [b".", b"\x00", b"\x01", b"c"]),
    max_size=60,
).map(b"".join)


def read(data: bytes) -> None:
    before = set(sys.modules)
    with contextlib.suppress(DumpError):
        reading.read(data)
    assert set(sys.modules) == before


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    read(data)


@given(OPCODES)
def test_any_row_of_opcodes_is_read_or_refused(data: bytes) -> None:
    read(data + b".")


@given(DUMPS, st.integers(2, 5), st.data())
def test_damaged_pickle_is_read_or_refused(value: Any, protocol: int, data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps(value, protocol))
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(whole))


@given(PLAIN, st.integers(2, 5))
def test_plain_data_survives(value: Any, protocol: int) -> None:
    assert pickles.load(pickle.dumps(value, protocol)) == value
