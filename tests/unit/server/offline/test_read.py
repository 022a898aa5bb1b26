"""Files that cannot be read are told apart one by one, and none of them does any harm."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile
import zipfile
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import fake_ras, left_behind

from hangwatch_server import offline
from hangwatch_server.offline import File, FileKind, read

NOW = datetime(2026, 11, 20, tzinfo=UTC)
WHOLE = left_behind.dump(0)


def said(data: bytes, name: str = "trace_rank_0") -> tuple[str, str]:
    found = read.read(File(name=name, data=data))
    assert found.kind is FileKind.NONE
    return found.problem, found.remedy


def archive() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        made.writestr("trace_rank_0", WHOLE.data)
    return held.getvalue()


def tape() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as made:
        made.addfile(tarfile.TarInfo("trace_rank_0"))
    return held.getvalue()


@pytest.mark.parametrize(
    ("data", "seems"),
    [
        (b"", "an empty file"),
        (b"  \n", "an empty file"),
        (archive(), "a zip archive"),
        (gzip.compress(WHOLE.data), "compressed with gzip"),
        (tape(), "a tar archive"),
        (b"\x7fELF\x02\x01", "a program or a core file"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"<!DOCTYPE html><p>", "a web page"),
        (b"node-a:1:2 [0] NCCL INFO Bootstrap", "a log of NCCL"),
        (b"Traceback (most recent call last):\n  x", "a Python traceback"),
        (b"\x00\x01\x02\x03", "binary data"),
        (b"dear diary", "text of no kind"),
    ],
)
def test_a_foreign_file_is_called_what_it_seems_to_be(data: bytes, seems: str) -> None:
    problem, remedy = said(data)

    assert seems in problem
    assert remedy


def test_a_truncated_dump_is_said_to_end_early_and_where() -> None:
    problem, remedy = said(WHOLE.data[:-40])

    assert "ends early" in problem
    assert f"byte {len(WHOLE.data) - 40}" in problem
    assert "copy it again" in remedy


def test_a_broken_line_is_named() -> None:
    problem, _ = said(b'{\n "entries": [],\n "pg_config": oops\n}')

    assert "line 3 (byte 32)" in problem


def test_a_pickle_that_would_run_something_is_refused_at_its_byte() -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("touch /tmp/stacks-was-here",)

    problem, remedy = said(pickle.dumps({"entries": Evil(), "pg_config": {}}, protocol=2))

    assert "opcode" in problem
    assert "at byte" in problem
    assert "is not run" in remedy
    assert not os.path.exists("/tmp/stacks-was-here")


def test_json_of_no_known_kind_is_said_to_be_none() -> None:
    assert "none of the parts of a recorder dump" in said(b'{"hello": 1}')[0]
    assert "no thread with a frame" in said(b"[]")[0]


@pytest.mark.parametrize("opening", [b"[", b'{"entries":['])
def test_a_deep_file_is_refused(opening: bytes) -> None:
    found = read.read(File(name="rank0", data=opening * 100_000))

    assert found.problem


def test_a_huge_file_is_refused_before_it_is_read() -> None:
    assert "are the most" in said(b"{" + b" " * read.MAX_FILE_BYTES)[0]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("comm_lib_trace_rank_5", 5),
        ("/tmp/x3/nccl_trace_rank_12", 12),
        ("C:\\dumps\\rank7.json", 7),
        ("job4-rank-9.pickle", 9),
        ("stacks-31.txt", 31),
        ("py-spy.txt", None),
        ("rank_\u0661.json", None),
        ("", None),
    ],
)
def test_the_rank_is_the_number_in_the_name(name: str, rank: int | None) -> None:
    assert read.rank_of(name) == rank


def test_a_dump_of_no_rank_is_explained() -> None:
    report = offline.examine([File(name="dump.json", data=WHOLE.data)], NOW)

    assert "does not say which rank" in report.files[0].note
    assert report.jobs == ()


def test_text_of_py_spy_is_read_without_its_locals() -> None:
    found = read.read(left_behind.stacks(3))

    (process,) = found.stacks
    assert (found.rank, process.pid, len(process.threads)) == (3, 812, 2)
    names = [frame.name for frame in process.threads[0].frames]
    assert names == ["read", "__getitem__", "fetch", "_next_data", "train", "<module>"]
    assert process.threads[1].owns_gil
    assert process.threads[1].frames[0].is_native


def test_children_in_one_text_of_py_spy_are_told_from_the_rank() -> None:
    worker = 'Process 813: python\n\nThread 813 (idle): "MainThread"\n    _worker_loop (w.py:1)\n'

    found = read.read(left_behind.stacks(0, left_behind.PY_SPY_TEXT + worker))

    assert [process.role for process in found.stacks] == ["main", "loader"]


@pytest.mark.parametrize("data", [fake_ras.TEXT_2_24, fake_ras.TEXT_2_27])
def test_text_of_ras_is_known_by_what_it_says(data: bytes) -> None:
    assert read.read(File(name="status.txt", data=data)).kind is FileKind.RAS


def test_two_hundred_files_of_all_sorts_are_each_accounted_for() -> None:
    files = [left_behind.dump(rank, late=150) for rank in range(200)]
    files[7] = File(name='<script>alert("7")</script>_rank_7', data=files[7].data)
    files[9] = File(name="trace_rank_9", data=archive())

    report = offline.examine(files, NOW)

    assert [row.name for row in report.files] == [file.name for file in files]
    (job,) = report.jobs
    assert job.verdict.culprit_ranks == "150"
    assert [row.name for row in report.files if not row.is_used] == ["trace_rank_9"]


@given(data=st.binary(max_size=300), name=st.text(max_size=40), start=st.sampled_from(
    [b"", b"{", b"[", b"\x80\x02", b'{"entries":', b'{"communicators":', b"NCCL version 2.24.3\n"]
))  # fmt: skip
def test_no_bytes_make_it_fail(data: bytes, name: str, start: bytes) -> None:
    report = offline.examine([File(name=name, data=start + data)], NOW)

    assert len(report.files) == 1


@given(
    cut=st.integers(0, len(WHOLE.data)),
    at=st.integers(0, len(WHOLE.data) - 1),
    to=st.binary(max_size=4),
)
def test_no_damaged_dump_makes_it_fail(cut: int, at: int, to: bytes) -> None:
    damaged = WHOLE.data[:at] + to + WHOLE.data[at + len(to) :]

    report = offline.examine([File(name="rank0", data=damaged[:cut]), left_behind.dump(1)], NOW)

    assert len(report.files) == 2


def test_a_frame_is_cut_at_its_first_bracket_however_many_follow() -> None:
    brackets = "    forward" + " (" * 990 + "))\n"
    text = 'Thread 1 (idle): "MainThread"\n    load (my (new) data.py:12)\n' + brackets * 500

    frames = read.read(File(name="stacks-0.txt", data=text.encode())).stacks[0].threads[0].frames

    assert (frames[0].name, frames[0].file, frames[0].line) == ("load", "my (new) data.py", 12)
    assert {frame.name for frame in frames[1:]} == {"forward"}
