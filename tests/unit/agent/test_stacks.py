"""py-spy's JSON as threads and frames."""

from __future__ import annotations

import msgspec
import pytest

from hangwatch_agent import stacks, wire


def thread(tid: int, frames: int = 1, **fields: object) -> dict[str, object]:
    frame = {"name": "step", "filename": "/a/train.py", "module": None, "line": 8}
    return {
        "pid": 5,
        "thread_id": 140,
        "os_thread_id": tid,
        "thread_name": "T",
        "active": False,
        "owns_gil": False,
        "frames": [frame] * frames,
        "process_info": None,
        **fields,
    }


def test_main_thread_comes_first_and_limits_hold() -> None:
    data = [thread(100 + index) for index in range(400)] + [thread(5, frames=999)]

    threads = stacks.parse(msgspec.json.encode(data))

    assert threads[0].thread_id == 5
    assert len(threads) == wire.MAX_THREADS
    assert len(threads[0].frames) == wire.MAX_FRAMES_PER_STACK


def test_frames_of_shared_libraries_are_native() -> None:
    native = {"name": "c10d::Work::wait", "filename": "", "module": "/x/libtorch.so", "line": 0}
    python = {"name": "<module>", "filename": "<string>", "module": None, "line": 1}

    (found,) = stacks.parse(msgspec.json.encode([thread(5) | {"frames": [native, python]}]))

    assert [frame.is_native for frame in found.frames] == [True, False]
    assert found.frames[0].file == "/x/libtorch.so"


def test_output_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        stacks.parse(b"Thread 5")
