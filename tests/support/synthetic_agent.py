"""An agent of two synthetic ranks over the real wire, for tests of what the server makes of it."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from hangwatch_agent import wire

LAUNCH = wire.Launch(key="launch of a test", name="gpt-test")
RANKS = "0-1"
GID = wire.gid_of(LAUNCH.key, "dp", RANKS, 1)
BEAT_S = 0.3


@dataclass
class SyntheticAgent:
    """Beats until it is closed; what it says of its ranks may be changed at any time."""

    socket: ClientConnection
    node: str
    launch: wire.Launch = LAUNCH
    is_gone: bool = False  # rank 1's process is gone without a cause, and rank 0 waits for it
    is_ended: bool = False  # every rank's process ended with this exit code
    exit_code: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    number: int = 0
    gone_at: int = 0  # number of the heartbeat before which rank 1 went

    def run(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while not self.stop.is_set():
                self.socket.send(wire.encode(self._heartbeat()))
                self._answer(BEAT_S)

    def _answer(self, timeout_s: float) -> None:
        """Serve commands for a while: each rank's stack is one frame of the user's code."""
        with contextlib.suppress(TimeoutError):
            data = self.socket.recv(timeout=timeout_s)
            assert isinstance(data, bytes)
            frame = wire.decode_from_server(data)
            if isinstance(frame, wire.TakeCapture):
                for target in frame.targets:
                    self.socket.send(wire.encode(_part(frame.capture, target)))

    def _heartbeat(self) -> wire.Heartbeat:
        self.number += 1
        self.gone_at = (self.gone_at or self.number) if self.is_gone else 0
        group = wire.GroupInfo(
            gid=wire.gid_of(self.launch.key, "dp", RANKS, 1),
            launch=self.launch.key,
            name="dp",
            description="data parallel",
            backend="gloo",
            ranks=RANKS,
        )
        return wire.Heartbeat(
            number=self.number,
            launches=(self.launch,),
            ranks=tuple(self._rank(rank, group.gid) for rank in (0, 1)),
            groups=(group,) if self.number == 1 else (),
            is_full=self.number == 1,
        )

    def _rank(self, rank: int, gid: str) -> wire.RankBeat:
        is_gone = self.is_ended or (self.is_gone and rank == 1)
        process = wire.ProcessFacts(
            state="gone" if is_gone else "S",
            exit_code=self.exit_code if self.is_ended else None,
            main_cpu_share=0.0,
        )
        is_stalled = self.gone_at > 0
        # The rank that waits has entered one collective more than the one that went.
        seq = self.gone_at + (rank == 0) if is_stalled else self.number
        is_waiting = is_stalled and rank == 0
        entry = wire.Entry(seq=seq, op="all_reduce", is_retired=not is_waiting)
        beat = wire.GroupBeat(
            gid=gid,
            counter=seq,
            stall_s=(self.number - self.gone_at) * BEAT_S if is_stalled else 0.0,
            seq=seq,
            entries=(entry,),
            entries_age_s=0.0,
            are_entries_current=True,
        )
        return wire.RankBeat(
            launch=self.launch.key,
            rank=rank,
            local_rank=rank,
            world_size=2,
            pid=1000 + rank,
            start_ticks=77,
            process=process,
            depth=wire.Depth.PROBE,
            is_rank_certain=True,
            beat_age_s=0.1,
            script="train.py",
            step=seq,
            is_initialised=True,
            is_destroyed=self.is_ended and self.exit_code == 0,
            groups=(beat,),
        )


def _part(capture: str, target: wire.Target) -> wire.CapturePart:
    frame = wire.Frame(name="train_step", file="/home/user/train.py", line=40 + target.rank)
    pid = 1000 + target.rank
    thread = wire.Thread(pid=pid, thread_id=pid, name="MainThread", frames=(frame,))
    stacks = (wire.ProcessStacks(pid=pid, role="main", threads=(thread,)),)
    return wire.CapturePart(
        capture=capture,
        launch=target.launch,
        rank=target.rank,
        pid=pid,
        age_s=0.0,
        stacks=stacks,
    )


@contextlib.contextmanager
def beating(
    url: str,
    token: str,
    node: str,
    launch: wire.Launch = LAUNCH,
    trust: ssl.SSLContext | None = None,
) -> Iterator[SyntheticAgent]:
    """An agent that is connected, welcomed and beats in a thread of its own."""
    address = url.replace("http", "ws", 1) + "/api/v1/agent/stream"
    headers = {"authorization": f"Bearer {token}"}
    # No pings: their thread draws from `random`, which hypothesis watches in later tests' threads.
    with connect(
        address,
        ssl=trust,
        additional_headers=headers,
        proxy=None,
        open_timeout=60,
        ping_interval=None,
    ) as socket:
        socket.send(wire.encode(wire.Hello(protocol=wire.PROTOCOL, node=node, version="0.1.0")))
        welcome = socket.recv(timeout=60)
        assert isinstance(welcome, bytes)
        assert isinstance(wire.decode_from_server(welcome), wire.Welcome)
        agent = SyntheticAgent(socket, node, launch)
        thread = threading.Thread(target=agent.run)
        thread.start()
        try:
            yield agent
        finally:
            agent.stop.set()
            thread.join()
