"""The dump pipe: a real FIFO with somebody behind it, and what stands there instead of one."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
from pathlib import Path

import pytest

from hangwatch_agent.dumps import pipe
from hangwatch_agent.dumps.reading import Dump
from hangwatch_agent.errors import DumpError

DUMP = {
    "version": "2.10",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
    "entries": [
        {
            "record_id": number,
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number + 1,
            "p2p_seq_id": 0,
            "profiling_name": "nccl:all_reduce",
            "input_sizes": [[4, 2]],
            "input_dtypes": ["Float"],
            "output_sizes": [[4, 2]],
            "output_dtypes": ["Float"],
            "state": "completed" if number < 2 else "scheduled",
            "time_discovered_started_ns": None,
            "retired": number < 2,
            "timeout_ms": 600000,
            "is_p2p": False,
        }
        for number in range(3)
    ],
}


def subject(folder: Path, rank: int = 3, **environ: str) -> pipe.Subject:
    named = {
        pipe.PIPE_NAME: f"{folder}/fr_",
        "TORCH_FR_DUMP_TEMP_FILE": f"{folder}/trace_",
        **environ,
    }
    return pipe.Subject(rank=rank, pid=os.getpid(), uid=os.getuid(), environ=named)


def asked(who: pipe.Subject, timeout_s: float = 60.0) -> Dump:
    return asyncio.run(pipe.dump(who, Path("/"), timeout_s))


def answering(folder: Path, *writes: bytes) -> threading.Thread:
    """A stand-in for torch's monitor thread: one byte in the pipe, then the file."""
    os.mkfifo(folder / "fr_3.pipe")
    handle = os.open(folder / "fr_3.pipe", os.O_RDWR)  # so that reading waits for a writer

    def answer() -> None:
        os.read(handle, 1)
        os.close(handle)
        for data in writes:
            (folder / "trace_3").write_bytes(data)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return thread


def test_byte_in_the_pipe_brings_the_dump(tmp_path: Path) -> None:
    (tmp_path / "trace_3").write_bytes(b"of an earlier day")
    thread = answering(tmp_path, pickle.dumps(DUMP, 2))

    found = asked(subject(tmp_path))

    thread.join(60)
    assert [entry.seq for entry in found.entries["0"]] == [1, 2, 3]
    assert found.entries["0"][-1].timeout_s == 600.0
    assert found.ranks == {"0": "0-2"}


def test_dump_that_stays_half_written_is_an_error(tmp_path: Path) -> None:
    thread = answering(tmp_path, pickle.dumps(DUMP, 2)[:50])

    with pytest.raises(DumpError, match="ends early"):
        asked(subject(tmp_path), timeout_s=3.0)
    thread.join(60)


def test_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fr_3.pipe")

    with pytest.raises(DumpError, match="cannot be opened"):
        asked(subject(tmp_path))


@pytest.mark.parametrize("kind", ["absent", "file", "link", "folder"])
def test_only_a_pipe_is_written_to(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "fr_3.pipe"
    target = tmp_path / "precious"
    target.write_bytes(b"")
    if kind == "file":
        place.write_bytes(b"")
    elif kind == "link":
        place.symlink_to(target)
    elif kind == "folder":
        place.mkdir()

    with pytest.raises(DumpError):
        asked(subject(tmp_path))

    assert target.read_bytes() == b""


def test_pipe_of_another_user_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fr_3.pipe")
    handle = os.open(tmp_path / "fr_3.pipe", os.O_RDONLY | os.O_NONBLOCK)
    foreign = pipe.Subject(rank=3, pid=1, uid=os.getuid() + 1, environ=subject(tmp_path).environ)

    with pytest.raises(DumpError, match="own user"):
        asked(foreign)

    assert os.read(handle, 1) == b""
    os.close(handle)


@pytest.mark.parametrize("stem", ["relative/fr_", "/tmp/../etc/fr_", "/" + "x" * 5000])
def test_strange_names_lead_nowhere(tmp_path: Path, stem: str) -> None:
    with pytest.raises(DumpError, match="plain absolute path"):
        asked(subject(tmp_path, **{pipe.PIPE_NAME: stem}))


def test_link_on_the_way_does_not_lead_out_of_the_ranks_root(tmp_path: Path) -> None:
    """Below /proc/PID/root the kernel would follow it from the agent's own root."""
    host, root = tmp_path / "host", tmp_path / "root"
    host.mkdir()
    root.mkdir()
    os.mkfifo(host / "fr_3.pipe")
    handle = os.open(host / "fr_3.pipe", os.O_RDWR | os.O_NONBLOCK)
    (root / "tmp").symlink_to(host)

    with pytest.raises(DumpError, match="cannot be opened"):
        asyncio.run(pipe.dump(subject(Path("/tmp")), root, 0.5))

    with pytest.raises(BlockingIOError):
        os.read(handle, 1)
    os.close(handle)


def test_link_on_the_way_is_followed_inside_the_ranks_root(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "tmp").symlink_to("/scratch")
    thread = answering(tmp_path / "scratch", pickle.dumps(DUMP, 2))

    found = asyncio.run(pipe.dump(subject(Path("/tmp")), tmp_path, 60.0))

    thread.join(60)
    assert found.ranks == {"0": "0-2"}


def test_dump_is_looked_for_where_torch_writes_it_by_default() -> None:
    def names(**environ: str) -> list[str]:
        return pipe._file_names(pipe.Subject(rank=1, pid=1, uid=1, environ=environ))

    assert names(HOME="/home/a")[0] == "/home/a/.cache/torch/comm_lib_trace_rank_1"
    assert names(HOME="/a", XDG_CACHE_HOME="/c")[0] == "/c/torch/comm_lib_trace_rank_1"
    assert names(TORCH_NCCL_DEBUG_INFO_TEMP_FILE="/d/t_") == ["/d/t_1"]


def test_storage_that_never_answers_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    looking = threading.Event()

    def never(file: Path, uid: int) -> None:
        looking.set()
        release.wait()

    monkeypatch.setattr(pipe, "_look", never)
    monkeypatch.setattr(pipe.pickles, "TIMEOUT_S", 0.5)

    async def ask() -> int:
        turns = 0
        task = asyncio.create_task(pipe.dump(subject(tmp_path), Path("/"), 0.5))
        while not task.done():
            await asyncio.sleep(0.001)
            turns += looking.is_set()
        with pytest.raises(DumpError, match="does not answer"):
            await task
        return turns

    try:
        assert asyncio.run(ask()) > 0
    finally:
        release.set()
