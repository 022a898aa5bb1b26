"""A RAS endpoint that speaks NCCL's real client protocol over a real socket, with given answers.

Written after NCCL's documentation and behaviour (src/ras/client_support.cc of 2.24 to 2.30 says
which line is answered how); its answers are laid out as NCCL lays them out. No job is behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from hangwatch_agent.ras.protocol import Endpoint

OPS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")


@dataclass
class FakeRas:
    """How the endpoint behaves; what it was asked is in `asked`."""

    answer: bytes = b""
    knows_json: bool = True
    greeting: bytes = b"SERVER PROTOCOL 2\n"
    is_stopped: bool = False  # accepts, and never says a word
    cut_after: int | None = None  # bytes of the answer, then the connection closes
    never_ends: bool = False
    asked: list[str] = field(default_factory=list)
    connections: int = 0

    @contextlib.asynccontextmanager
    async def listening(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Endpoint]:
        server = await asyncio.start_server(self._serve, host, port)
        port = server.sockets[0].getsockname()[1]
        async with server:
            yield Endpoint(host, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await self._talk(reader, writer)
        writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := (await reader.readline()).decode().strip():
            self.asked.append(line)
            if self.is_stopped:
                continue
            if line.lower() in ("status", "verbose status"):
                writer.write(self.answer[: self.cut_after])
                await writer.drain()
                if not self.never_ends:
                    return
            else:
                writer.write(self._reply(line.lower()))
                await writer.drain()

    def _reply(self, command: str) -> bytes:
        if command.startswith("client protocol "):
            return self.greeting
        if command.startswith("timeout "):
            return b"OK\n"
        if command == "set format json" and self.knows_json:
            return b"OK\n"
        return f"ERROR: Unknown command {command}\n".encode()


@dataclass(frozen=True)
class FakeRank:
    """One member as RAS tells of it; `counts` in the order of OPS."""

    rank: int
    pid: int
    host: str = "10.0.0.1"
    gpu: int = 0
    counts: tuple[int, ...] = (0, 0, 0, 0, 0)
    async_error: int = 0
    init_state: int = 0
    is_finalizing: bool = False
    is_unresponsive: bool = False
    is_dead: bool = False


def communicator(
    ranks: Sequence[FakeRank], missing: Sequence[FakeRank] = (), hash: str = "ae94423cfbb2ef4a"
) -> dict[str, object]:
    return {
        "hash": f"0x{hash}",
        "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e",
        "size": len(ranks) + len(missing),
        "ranks_count": len(ranks),
        "missing_ranks_count": len(missing),
        "ranks": [_member(rank) for rank in ranks],
        "missing_ranks": [_missing(rank) for rank in missing],
    }


def status_json(
    *communicators: dict[str, object], version: str = "2.30.7", has_comma: bool = True
) -> bytes:
    """A whole answer; `has_comma=False` gives the missing ranks of 2.28.7 and 2.28.9."""
    text = json.dumps(
        {
            "nccl_version": version,
            "cuda_runtime_version": 13000,
            "cuda_driver_version": 13000,
            "timestamp": "2025-12-19 13:06:53",
            "communicators_count": len(communicators),
            "communicators": list(communicators),
            "ras": {"collection_time_sec": 0.002, "timeouts_count": 0},
        },
        indent=2,
    )
    if not has_comma:
        head, missing, tail = text.partition('"missing_ranks"')
        text = head + missing + tail.replace(',\n          "status"', '\n          "status"')
    return f"{text}\n".encode()


def _member(rank: FakeRank) -> dict[str, object]:
    return {
        **_who(rank),
        "status": {
            "init_state": rank.init_state,
            "async_error": rank.async_error,
            "finalize_called": rank.is_finalizing,
            "destroy_flag": False,
            "abort_flag": False,
        },
        "collective_counts": dict(zip(OPS, rank.counts, strict=True)),
    }


def _missing(rank: FakeRank) -> dict[str, object]:
    status = {"unresponsive": rank.is_unresponsive, "considered_dead": rank.is_dead}
    return {**_who(rank), "status": status}


def _who(rank: FakeRank) -> dict[str, object]:
    return {
        "rank": rank.rank,
        "host": rank.host,
        "pid": rank.pid,
        "cuda_dev": rank.gpu,
        "nvml_dev": rank.gpu,
    }


# The sections of NCCL's own documentation, put together as 2.24 tells them.
TEXT_2_24 = b"""NCCL version 2.24.3 compiled with CUDA 12.4
CUDA runtime version 12040, driver version 12040

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE,MISMATCH
    1         8         4         1         4        32   RUNNING      OK

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (27a079b828ff1a75) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  25 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
  Rank 3 -- GPU 3 managed by process 483075 on node 172.16.64.210
  Rank 4 -- GPU 4 managed by process 483076 on node 172.16.64.210
  Rank 5 -- GPU 5 managed by process 483077 on node 172.16.64.210
  Rank 7 -- GPU 7 (NVML 3) managed by process 483079 on node 172.16.64.210

"""

TEXT_2_27 = b"""NCCL version 2.27.5 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          4            1          4        4

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4  FINALIZE  ERROR,MISMATCH

Errors
======

#0-0 (9e17999afaa87dbb) ERROR
  Asynchronous error on 1 rank
  Rank 1 reported Remote process error -- GPU 1 managed by process 801 on node 10.0.0.1

Warnings
========

#0-0 (9e17999afaa87dbb) MISMATCH
  Communicator ranks have different status
  3 ranks have status RUNNING
  Rank 2 has status FINALIZE -- GPU 2 managed by process 802 on node 10.0.0.1
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 30
  Rank 3 has launched up to operation 29 -- GPU 3 managed by process 803 on node 10.0.0.1

  Communicator ranks have different Broadcast operation counts
  3 ranks have launched up to operation 5
  Rank 0 has not launched any operations -- GPU 0 managed by process 800 on node 10.0.0.1

"""
