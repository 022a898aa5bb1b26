"""Source lines of real processes: what the user's own code says, and nothing that is not theirs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.agent import conftest as make

from hangwatch_agent import permissions, process, wire
from hangwatch_agent.captures import Captures
from hangwatch_agent.process import Identity
from hangwatch_agent.sources import Sources
from hangwatch_agent.stacks import Stacks

Start = Callable[..., subprocess.Popen[bytes]]
SCRIPT = """import sys

def wait_for_input():
    print(flush=True)
    sys.stdin.read()  # the line of interest
    print("over")

wait_for_input()
"""
AS_NOBODY = f"import os, sys; os.setuid({make.NOBODY}); print(flush=True); sys.stdin.read()"


def begun(started: subprocess.Popen[bytes]) -> Identity:
    assert started.stdout is not None
    started.stdout.readline()
    proc = process.default_proc()
    stat = proc.stat(started.pid)
    assert stat is not None
    (uid,) = proc.uids(started.pid)
    return Identity(started.pid, stat.start_ticks, uid)


def at(identity: Identity, file: Path | str, line: int = 2) -> list[wire.ProcessStacks]:
    """A stack that claims to stand at this line: what a rank says of itself is its own choice."""
    frame = wire.Frame(name="f", file=str(file), line=line)
    thread = wire.Thread(pid=identity.pid, thread_id=identity.pid, name="", frames=(frame,))
    return [wire.ProcessStacks(pid=identity.pid, role="main", threads=(thread,))]


def read(identity: Identity, stacks: list[wire.ProcessStacks]) -> tuple[wire.Source, ...]:
    return asyncio.run(Sources(is_on=True, timeout_s=90).of(identity, stacks))


@pytest.mark.anyio
async def test_capture_tells_the_text_of_the_line_that_a_rank_stands_at(
    start: Start, run_dir: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    rank = begun(start(str(script)))
    make.write_record(run_dir, rank.pid)
    node = make.node_of(run_dir)
    make.look(node)
    py_spy = permissions.find_py_spy()
    stacks = Stacks(process.default_proc(), concurrency=1, timeout_s=90, py_spy=py_spy)
    command = wire.TakeCapture(capture="c", targets=(wire.Target(launch="run:job", rank=0),))
    parts: list[wire.CapturePart] = []

    async def deliver(part: wire.CapturePart) -> None:
        parts.append(part)

    await Captures(node, stacks, Sources(is_on=True, timeout_s=90)).take(command, deliver)

    innermost = parts[0].sources[0]
    assert (innermost.file, innermost.line, innermost.first) == (str(script), 5, 3)
    assert innermost.lines == tuple(SCRIPT.splitlines()[2:7])
    assert [source.line for source in parts[0].sources] == [5, 8]


def test_nothing_is_read_where_it_is_switched_off(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    rank = begun(start("-c", make.SLEEPER))

    sources = Sources(is_on=False)

    assert asyncio.run(sources.of(rank, at(rank, tmp_path / "train.py"))) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read what a rank's user may not")
def test_root_agent_reads_only_what_the_ranks_user_may(start: Start) -> None:
    rank = begun(start("-c", AS_NOBODY))
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        Path(folder).chmod(0o755)
        public, secret, linked = (Path(folder) / name for name in ("a.py", "b.py", "c.py"))
        public.write_text("first\nsecond\n")
        secret.write_text("token\ntoken\n")
        secret.chmod(0o600)
        linked.symlink_to(secret)

        assert [source.lines for source in read(rank, at(rank, public))] == [
            ("first", "second", "")
        ]
        assert read(rank, at(rank, secret)) == ()
        assert read(rank, at(rank, linked)) == ()


@pytest.mark.parametrize("what", ["pipe", "device", "folder", "huge", "no such line"])
def test_what_is_no_source_file_is_not_read(start: Start, tmp_path: Path, what: str) -> None:
    rank = begun(start("-c", make.SLEEPER))
    file, line = tmp_path / "train.py", 2
    match what:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file = Path("/dev/zero")
        case "folder":
            file.mkdir()
        case "huge":
            file.write_bytes(b"x\n" * 4_000_000)
        case _:
            file.write_text("one\n")
            line = 9

    assert read(rank, at(rank, file, line)) == ()


def test_line_that_is_no_text_does_no_harm(start: Start, tmp_path: Path) -> None:
    rank = begun(start("-c", make.SLEEPER))
    file = tmp_path / "train.py"
    file.write_bytes(b"\0\x1b[31m\xff\tred\r\n" + b"x" * 100_000 + b"\n")

    (source,) = read(rank, at(rank, file, 1))

    assert source.lines[0] == "\ufffd\ufffd[31m\ufffd red"
    assert [len(line) for line in source.lines] == [11, 240, 0]


@pytest.mark.anyio
async def test_reader_that_does_not_answer_is_not_asked_again_soon(
    start: Start, tmp_path: Path
) -> None:
    rank = begun(start("-c", make.SLEEPER))
    file, asked, reader = (tmp_path / name for name in ("train.py", "asked", "reader.py"))
    file.write_text(SCRIPT)
    reader.write_text(f"open({str(asked)!r}, 'a').write('x')\nwhile True: pass\n")
    sources = Sources(is_on=True, reader=reader, timeout_s=1.0)

    found = [await sources.of(rank, at(rank, file)) for _ in range(3)]

    assert found == [(), (), ()]
    assert len(asked.read_text() if asked.exists() else "") <= 1


def test_process_that_was_replaced_by_another_is_not_asked(start: Start, tmp_path: Path) -> None:
    rank = begun(start("-c", make.SLEEPER))
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    former = Identity(rank.pid, rank.start_ticks - 1, rank.uid)

    assert read(former, at(rank, file)) == ()
