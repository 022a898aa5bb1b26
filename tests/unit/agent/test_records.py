"""The record reader against good, torn, foreign and hostile files."""

from __future__ import annotations

import json
import os
import struct
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hangwatch_agent import records
from hangwatch_agent.probe import record

PAYLOAD = {"beat": 1, "at_ns": 5, "rank": 3, "groups": [{"name": "0", "ranks": "0-3"}]}


def written(folder: Path, *payloads: object) -> record.Writer:
    writer = record.Writer(str(folder), os.getpid(), 77)
    for payload in payloads:
        writer.write(json.dumps(payload).encode())
    return writer


def overwrite(path: str, offset: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def test_reader_gives_the_newest_beat(tmp_path: Path) -> None:
    written(tmp_path, PAYLOAD, {**PAYLOAD, "beat": 2}, {**PAYLOAD, "beat": 3})

    (path,) = records.scan(tmp_path)
    found = records.read(path)

    assert found.payload is not None
    assert found.payload.beat == 3
    assert found.payload.groups[0].ranks == "0-3"
    assert (found.pid, found.start_ticks, found.uid) == (os.getpid(), 77, os.getuid())
    assert found.problem == ""


def test_torn_slot_falls_back_to_the_beat_before(tmp_path: Path) -> None:
    writer = written(tmp_path, PAYLOAD, {**PAYLOAD, "beat": 2})
    second = record.HEADER_SIZE + record.EXIT_SIZE  # beat 2 is in slot 0
    overwrite(writer.path, second + record.SLOT.size, b"torn")

    found = records.read(Path(writer.path))

    assert found.payload is not None
    assert found.payload.beat == 1


def test_slot_under_way_is_not_read(tmp_path: Path) -> None:
    writer = written(tmp_path, PAYLOAD)
    slot = record.HEADER_SIZE + record.EXIT_SIZE + record.SLOT_SIZE
    overwrite(writer.path, slot, struct.pack("<Q", 1))

    found = records.read(Path(writer.path))

    assert found.payload is None
    assert found.problem == "record holds no complete beat yet"


def test_exit_mark_is_read_beside_the_payload(tmp_path: Path) -> None:
    writer = written(tmp_path, PAYLOAD)
    writer.mark_exit(1, "RuntimeError", 9)

    found = records.read(Path(writer.path))

    assert found.exit is not None
    assert (found.exit.code, found.exit.exception) == (1, "RuntimeError")


def test_newer_format_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    writer = written(tmp_path, {**PAYLOAD, "from_the_future": [1]})
    overwrite(writer.path, len(record.MAGIC), struct.pack("<I", 9))

    found = records.read(Path(writer.path))

    assert found.payload is not None
    assert found.format_version == 9


def test_newer_format_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    writer = written(tmp_path, {"beat": "of another kind"})
    overwrite(writer.path, len(record.MAGIC), struct.pack("<I", 9))

    found = records.read(Path(writer.path))

    assert found.payload is None
    assert "update Hangwatch" in found.problem


def test_link_is_not_followed(tmp_path: Path) -> None:
    writer = written(tmp_path, PAYLOAD)
    link = tmp_path / "1.1.record"
    link.symlink_to(writer.path)

    assert "cannot be opened" in records.read(link).problem


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "fifo"])
def test_what_is_not_a_regular_file_is_refused(tmp_path: Path, make: object) -> None:
    path = tmp_path / "1.1.record"
    make(path)  # type: ignore[operator]

    assert records.read(path).problem == "record is not a regular file"


def test_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "1.1.record"
    path.touch()
    os.truncate(path, 1 << 40)

    assert "impossible size" in records.read(path).problem


def test_missing_folder_holds_no_records(tmp_path: Path) -> None:
    assert records.scan(tmp_path / "absent") == []


fuzz = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@fuzz
@given(data=st.binary(max_size=4096), has_magic=st.booleans())
def test_garbage_never_raises(tmp_path: Path, data: bytes, has_magic: bool) -> None:
    path = tmp_path / "1.1.record"
    path.write_bytes((record.MAGIC if has_magic else b"") + data)

    assert records.read(path).problem != ""


@fuzz
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=16)), max_size=6
    )
)
def test_damaged_record_never_raises(tmp_path: Path, changes: list[tuple[int, bytes]]) -> None:
    writer = written(tmp_path, PAYLOAD)
    for offset, data in changes:
        overwrite(writer.path, offset, data)

    found = records.read(Path(writer.path))

    assert (found.payload is None) == (found.problem != "")


@fuzz
@given(text=st.text(max_size=2000) | st.just('{"a":' * 3000))
def test_any_payload_text_never_raises(tmp_path: Path, text: str) -> None:
    writer = record.Writer(str(tmp_path), os.getpid(), 77)
    writer.write(text.encode("utf-8", "surrogatepass") or b"x")

    assert records.read(Path(writer.path)).payload is None


@pytest.mark.parametrize("field", ["rank", "beat", "step", "at_ns"])
def test_number_that_no_heartbeat_can_carry_is_a_problem_of_the_record(
    tmp_path: Path, field: str
) -> None:
    writer = written(tmp_path, {**PAYLOAD, field: 2**70})

    found = records.read(Path(writer.path))

    assert found.payload is None
    assert "cannot be read" in found.problem


def test_names_that_no_probe_writes_are_not_looked_at(tmp_path: Path) -> None:
    for name in ("x.record", "1.record", "1.2.3.record", "12.34.record.new", ".record"):
        (tmp_path / name).touch()

    assert records.scan(tmp_path) == []


def test_fifo_named_like_a_record_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "12.34.record")

    found = records.read(tmp_path / "12.34.record")

    assert found.problem == "record is not a regular file"


def test_folder_shows_what_came_and_went_also_within_one_tick_of_its_clock(tmp_path: Path) -> None:
    folder = records.Folder(tmp_path)
    path = tmp_path / "1.1.record"
    before = folder.paths(time.time())
    stamp = tmp_path.stat().st_mtime_ns

    path.touch()
    os.utime(tmp_path, ns=(stamp, stamp))

    assert before == []
    assert folder.paths(time.time()) == [path]
    path.unlink()
    assert folder.paths(time.time()) == []


def test_folder_that_has_not_changed_for_seconds_is_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1.1.record"
    path.touch()
    folder = records.Folder(tmp_path)
    later_s = time.time() + records.SETTLED_S + 1
    folder.paths(later_s)
    with monkeypatch.context() as patched:
        patched.setattr(records, "scan", lambda run_dir: pytest.fail("it is listed again"))
        again = folder.paths(later_s)
    (tmp_path / "2.2.record").touch()
    os.utime(tmp_path, ns=(1, 1))

    assert again == [path]
    assert len(folder.paths(later_s)) == 2


def test_folder_that_is_not_there_holds_no_records(tmp_path: Path) -> None:
    assert records.Folder(tmp_path / "absent").paths(time.time()) == []
