"""The recorder's JSON as torch writes it (recorded from a hung gloo job)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hangwatch_agent import recorder, wire
from hangwatch_agent.errors import SocketError
from hangwatch_agent.process import Identity

HUNG = (
    b'{"comm_lib_version":"","entries":[{"collective_seq_id":6,"input_dtypes":["Float"],'
    b'"input_sizes":[[8]],"is_p2p":false,"op_id":6,"output_dtypes":["Float"],"output_sizes":[[8]],'
    b'"p2p_seq_id":0,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"gloo:all_reduce",'
    b'"record_id":5,"retired":false,"state":"scheduled","thread_id":"139672554728320",'
    b'"time_created_ns":1795196826008880457,"time_discovered_completed_ns":0,'
    b'"time_discovered_started_ns":0,"timeout_ms":25000}],"version":"2.10"}'
)
EMPTY = (
    b'{"comm_lib_version":"","nccl_comm_state":{},"pg_config":{},"pg_status":{},"version":"2.10"}'
)


def group(name: str, epoch: int = 1) -> wire.GroupInfo:
    return wire.GroupInfo(
        gid=f"{name}.{epoch}",
        launch="k",
        name=name,
        description="",
        backend="",
        ranks="0-1",
        epoch=epoch,
    )


def test_entry_of_a_hung_collective() -> None:
    (entry,) = recorder.parse(HUNG)["0"]

    assert (entry.seq, entry.op, entry.is_retired, entry.is_started) == (
        6,
        "all_reduce",
        False,
        None,
    )
    assert (entry.input_sizes, entry.timeout_s) == (((8,),), 25.0)


def test_dump_without_entries_is_empty() -> None:
    assert recorder.parse(EMPTY) == {}


def test_garbage_is_refused() -> None:
    with pytest.raises(SocketError, match="cannot be read"):
        recorder.parse(b"[1,2")


def test_entries_go_to_the_newest_group_of_their_name() -> None:
    by_name = recorder.parse(HUNG)

    (found,) = recorder.match(by_name, [group("0", 1), group("0", 2), group("tp")])

    assert found.gid == "0.2"


def test_socket_whose_file_is_removed_says_nothing_of_its_rank(tmp_path: Path) -> None:
    me = Identity(os.getpid(), 0, os.getuid())

    assert asyncio.run(recorder.ping(tmp_path / "gone.sock", me)) is None


def test_answer_that_would_fill_the_memory_is_not_read() -> None:
    with pytest.raises(SocketError, match="holds too much"):
        recorder.parse(b'{"entries":[' + b"{}," * 1_400_000 + b"{}]}")
