"""A whole agent process against a real WebSocket endpoint that speaks the wire."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.agent import conftest as make
from tests.integration.agent.conftest import Sink

from hangwatch_agent import wire
from hangwatch_agent.errors import RunDirError
from hangwatch_agent.rundir import Lock
from hangwatch_server.demo import stage

pytestmark = pytest.mark.anyio
AGENT = """
import asyncio, sys
from pathlib import Path
from hangwatch_agent import service
from hangwatch_agent.settings import AgentSettings
asyncio.run(service.run(AgentSettings(
    server=sys.argv[1], run_dir=Path(sys.argv[2]), node="n1", token="hw_x_secret")))
"""
ADOPTING = AGENT.replace('node="n1"', 'node="n1", adopt=True')
BARE = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
WAITER = """
import sys
def wait_for_a_word():
    sys.stdin.read()
wait_for_a_word()
"""
Start = Callable[..., subprocess.Popen[bytes]]


def launch_agent(start: Start, port: int, run_dir: Path) -> subprocess.Popen[bytes]:
    return start("-c", AGENT, f"http://127.0.0.1:{port}", str(run_dir))


def parts_of(sink: Sink) -> list[wire.CapturePart]:
    """What the agent saw by itself of ranks without a probe, oldest first."""
    frames = sink.frames[-1] if sink.frames else []
    return [part for frame in frames if isinstance(frame, wire.Samples) for part in frame.parts]


def names_of(part: wire.CapturePart) -> list[str]:
    """The functions of its main thread; none where the process could not be read yet."""
    threads = part.stacks[0].threads if part.stacks else ()
    return [frame.name for frame in threads[0].frames] if threads else []


def with_ranks(sink: Sink) -> wire.Heartbeat | None:
    beat = sink.last(wire.Heartbeat)
    return beat if beat is not None and beat.ranks else None


async def test_agent_says_hello_and_then_what_its_ranks_do(
    sink: Sink, start: Start, run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    make.write_record(run_dir, rank_process.pid)
    launch_agent(start, await sink.open(), run_dir)

    beat = await sink.until(lambda: with_ranks(sink))

    hello = sink.frames[0][0]
    assert isinstance(hello, wire.Hello)
    assert (hello.node, sink.tokens[0]) == ("n1", "Bearer hw_x_secret")
    assert (beat.ranks[0].pid, beat.ranks[0].rank, beat.launches[0].key) == (
        rank_process.pid,
        0,
        "run:job",
    )


async def test_reconnect_sends_full_state_again(
    sink: Sink, start: Start, run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    make.write_record(run_dir, rank_process.pid)
    launch_agent(start, await sink.open(), run_dir)
    before = await sink.until(lambda: with_ranks(sink))

    await sink.sockets[0].close()
    await sink.until(lambda: len(sink.frames) > 1 and with_ranks(sink))
    first = next(frame for frame in sink.frames[1] if isinstance(frame, wire.Heartbeat))

    assert first.is_full
    assert [group.gid for group in first.groups] == [first.ranks[0].groups[0].gid]
    assert first.number > before.number


async def test_capture_is_kept_until_it_is_acknowledged(
    sink: Sink, start: Start, run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    sink.acknowledges = False
    make.write_record(run_dir, rank_process.pid)
    port = await sink.open()
    agent = launch_agent(start, port, run_dir)
    await sink.until(lambda: with_ranks(sink))

    await sink.send(
        wire.TakeCapture(capture="c1", targets=(wire.Target(launch="run:job", rank=0),))
    )
    part = await sink.until(lambda: sink.last(wire.CapturePart))
    assert part.stacks[0].threads or part.stacks[0].remedy
    agent.kill()
    agent.wait()
    sink.acknowledges = True
    connections = len(sink.frames)
    launch_agent(start, port, run_dir)
    again = await sink.until(
        lambda: sink.last(wire.CapturePart) if len(sink.frames) > connections else None
    )

    assert (again.capture, again.stacks) == (part.capture, part.stacks)
    assert again.age_s > part.age_s
    await sink.until(lambda: not list((run_dir / "spool").glob("*.part")))


async def test_capture_of_an_untracked_rank_comes_back_with_a_reason(
    sink: Sink, start: Start, run_dir: Path
) -> None:
    launch_agent(start, await sink.open(), run_dir)
    await sink.until(lambda: sink.last(wire.Heartbeat))

    await sink.send(
        wire.TakeCapture(capture="c1", targets=(wire.Target(launch="run:job", rank=9),))
    )
    part = await sink.until(lambda: sink.last(wire.CapturePart))

    assert (part.rank, part.stacks) == (9, ())
    assert "no such rank" in part.reason


async def test_rank_without_a_probe_is_looked_at_unasked(
    sink: Sink, start: Start, run_dir: Path
) -> None:
    rank = start("-c", WAITER, **BARE)
    start("-c", ADOPTING, f"http://127.0.0.1:{await sink.open()}", str(run_dir))

    def looks() -> list[wire.CapturePart]:
        return [part for part in parts_of(sink) if part.pid == rank.pid]

    def told() -> wire.CapturePart | None:
        """A look at where it stands: the first may have come while Python started."""
        return next((part for part in looks() if "wait_for_a_word" in names_of(part)), None)

    found = await sink.until(told)
    await sink.until(lambda: len(looks()) >= 3)  # it stands still, so it is looked at again soon

    assert (found.rank, found.stacks[0].role) == (3, "main")
    assert len({part.capture for part in looks()}) == len(looks())


async def test_server_that_does_not_know_samples_is_sent_none(
    sink: Sink, start: Start, run_dir: Path
) -> None:
    sink.takes_samples = False
    rank = start("-c", WAITER, **BARE)
    start("-c", ADOPTING, f"http://127.0.0.1:{await sink.open()}", str(run_dir))

    def is_listed_for_long() -> bool:
        beats = [frame for frame in sink.frames[-1] if isinstance(frame, wire.Heartbeat)]
        return sum(any(r.pid == rank.pid for r in beat.ranks) for beat in beats) > 8

    await sink.until(lambda: bool(sink.frames) and is_listed_for_long())

    assert sink.last(wire.Samples) is None


async def test_unknown_command_is_ignored(sink: Sink, start: Start, run_dir: Path) -> None:
    launch_agent(start, await sink.open(), run_dir)
    await sink.until(lambda: sink.last(wire.Heartbeat))
    count = len(sink.frames[0])

    await sink.sockets[0].send(b"\x81\xa4type\xa7rm -rf /")
    await sink.sockets[0].send("text")
    await sink.until(lambda: len(sink.frames[0]) > count + 2)

    assert len(sink.frames) == 1


async def test_refused_agent_asks_again_when_it_was_told_to(
    sink: Sink, start: Start, run_dir: Path
) -> None:
    sink.refusal = wire.Refused(code="duplicate_node", reason="n1 is here", retry_after_s=0.5)
    launch_agent(start, await sink.open(), run_dir)
    await sink.until(lambda: len(sink.frames) > 1)

    sink.refusal = None

    assert await sink.until(lambda: sink.last(wire.Heartbeat))


async def test_agent_of_a_server_that_stops_comes_back_and_says_all_of_it_again(
    sink: Sink, start: Start, run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    make.write_record(run_dir, rank_process.pid)
    launch_agent(start, await sink.open(), run_dir)
    await sink.until(lambda: with_ranks(sink))

    await sink.send(wire.Refused(code=wire.GOING_AWAY, reason="it stops", retry_after_s=0.6))
    await sink.until(lambda: len(sink.frames) > 1 and with_ranks(sink))
    first = next(frame for frame in sink.frames[1] if isinstance(frame, wire.Heartbeat))

    assert first.is_full
    assert first.groups


async def test_agent_waits_for_a_server_that_comes_later(
    sink: Sink, start: Start, run_dir: Path
) -> None:
    port = stage.free_port()
    launch_agent(start, port, run_dir)
    async with asyncio.timeout(make.DEADLINE_S):
        await asyncio.to_thread(
            make.wait_for, lambda: (run_dir / "spool").is_dir(), "the agent runs"
        )

    await sink.open(port)

    assert await sink.until(lambda: sink.last(wire.Heartbeat))


async def test_sigterm_ends_the_agent_cleanly(sink: Sink, start: Start, run_dir: Path) -> None:
    agent = launch_agent(start, await sink.open(), run_dir)
    await sink.until(lambda: sink.last(wire.Heartbeat))

    agent.send_signal(signal.SIGTERM)

    assert await asyncio.to_thread(agent.wait, make.DEADLINE_S) == 0


async def test_second_agent_on_a_run_dir_is_refused_with_a_sentence(run_dir: Path) -> None:
    lock = Lock(run_dir)

    with pytest.raises(RunDirError, match=r"another agent already \(pid \d+\).*--run-dir"):
        Lock(run_dir)
    lock.release()
    Lock(run_dir).release()
