"""Files as a hung job of four ranks leaves them behind; nothing is asserted here."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import Path

from tests.support.fake_ras import FakeRank, communicator, status_json
from tests.support.recorded import Recorder

from hangwatch_server.offline import File

STACKS = Path(__file__).resolve().parents[1] / "data" / "stacks"
PY_SPY_TEXT = """Process 812: /usr/bin/python train.py
Python v3.11.4 (/usr/bin/python3.11)

Thread 812 (idle): "MainThread"
    read (storage.py:212)
        Arguments:
            self: <Storage at 0x7f>
    __getitem__ (train.py:88)
    fetch (torch/utils/data/_utils/fetch.py:54)
    _next_data (torch/utils/data/dataloader.py:764)
    train (train.py:141)
    <module> (train.py:204)
Thread 840 (active+gil): "pt_autograd_0"
    poll (libc.so.6)
"""


def dump(rank: int, *, late: int | None = 2, name: str = "trace_rank_{}", at: int = 6) -> File:
    """One rank's dump: all wait in call `at`, which rank `late` never entered."""
    source = Recorder("gloo")
    for seq in range(1, at):
        source.collective("0", seq)
    if rank != late:
        source.collective("0", at, state="scheduled")
    return File(name=name.format(rank), data=source.dump())


def dumps(ranks: Iterable[int] = range(4), **how: object) -> list[File]:
    return [dump(rank, **how) for rank in ranks]  # type: ignore[arg-type]


def pickled(file: File) -> File:
    """The same dump as torch's C++ writes it to a file."""
    return File(name=file.name, data=pickle.dumps(json.loads(file.data), protocol=2))


def stacks(rank: int, text: str = PY_SPY_TEXT, name: str = "py-spy_rank_{}.txt") -> File:
    return File(name=name.format(rank), data=text.encode())


def stacks_json(rank: int, recorded: str = "allreduce") -> File:
    data = (STACKS / f"{recorded}.json").read_bytes()
    return File(name=f"py-spy_rank_{rank}.json", data=data)


def ras(name: str = "ras.json", behind: int | None = 2, ranks: int = 4) -> File:
    """An answer in which one rank has launched one all_reduce less than the others."""
    members = [
        FakeRank(rank, 4000 + rank, counts=(0, 0, 0, 0, 40 if rank == behind else 41))
        for rank in range(ranks)
    ]
    return File(name=name, data=status_json(communicator(members)))
