"""What the arrival of heartbeats costs the server, from the frame's bytes to the board.

Part of `bench/diagnosis.py`: whatever is worked out as a heartbeat arrives is not part of a look,
and must not hide there.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from hangwatch_agent import wire
from hangwatch_server import places
from hangwatch_server.board import MemoryBoard
from hangwatch_server.ingest import bounds
from hangwatch_server.model import Snapshot
from hangwatch_server.places import Places

RANKS_PER_NODE = 8
REPEATS = 3
_US = 1e6


@dataclass(frozen=True, slots=True)
class Arrivals:
    """CPU microseconds per rank's heartbeat; of `places` in it."""

    changed_us: float
    changed_places_us: float
    kept_us: float
    kept_places_us: float

    def __str__(self) -> str:
        return (
            f"changed {self.changed_us:.0f} us (places {self.changed_places_us:.1f}), "
            f"kept {self.kept_us:.0f} us (places {self.kept_places_us:.1f})"
        )


def measure(snapshot: Snapshot) -> Arrivals:
    """The least of a few rounds; in each all nodes send first whole entries, then none."""
    beats = [view.beat for view in snapshot.ranks.values() if view.beat is not None]
    board, nodes = MemoryBoard(), range(0, len(beats), RANKS_PER_NODE)
    for first in nodes:
        node = str(first)
        board.hello(node, wire.Hello(protocol=wire.PROTOCOL, node=node, version=""), 0.0)
    changed, kept = frames(beats)
    rounds = [(_taken_s(board, changed), _taken_s(board, kept)) for _ in range(REPEATS)]
    number = len(beats) / _US
    changed_places_s, kept_places_s = _places_s(changed)
    return Arrivals(
        min(one for one, _ in rounds) / number,
        changed_places_s / number,
        min(one for _, one in rounds) / number,
        kept_places_s / number,
    )


def frames(beats: Sequence[wire.RankBeat]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """One frame of each node: with all entries, and without those that it sent before."""
    nodes = range(0, len(beats), RANKS_PER_NODE)
    changed = {str(n): _frame(beats[n : n + RANKS_PER_NODE]) for n in nodes}
    kept = {str(n): _frame(map(_less, beats[n : n + RANKS_PER_NODE])) for n in nodes}
    return changed, kept


def _frame(beats: Iterable[wire.RankBeat]) -> bytes:
    return wire.encode(
        wire.Heartbeat(
            number=1, launches=(wire.Launch(key="bench", name="bench"),), ranks=tuple(beats)
        )
    )


def _less(beat: wire.RankBeat) -> wire.RankBeat:
    """The beat as an agent sends it while nothing moves, see `hangwatch_agent.carried`."""
    groups = [
        msgspec.structs.replace(one, entries=(), tail=None, are_entries_kept=bool(one.entries))
        for one in beat.groups
    ]
    return msgspec.structs.replace(beat, groups=tuple(groups))


def _taken_s(board: MemoryBoard, frames: dict[str, bytes]) -> float:
    """As `ingest.socket` takes in one frame of each node."""
    gc.collect()
    started_s = time.process_time()
    for node, data in frames.items():
        frame = _heartbeat(data)
        bounds.check_heartbeat(frame)
        board.apply(node, frame, 0.0)
    return time.process_time() - started_s


def _places_s(frames: dict[str, bytes]) -> tuple[float, float]:
    """What working out the places takes, of heartbeats just decoded and of the same ones again."""
    changed_s = kept_s = 0.0
    for data in frames.values():
        beats = _heartbeat(data).ranks
        found, took_s = _placed(beats, [()] * len(beats))
        changed_s += took_s
        kept_s += _placed([_again(beat) for beat in beats], found)[1]
    return changed_s, kept_s


def _again(beat: wire.RankBeat) -> wire.RankBeat:
    """A second later: the same entries, a longer stall."""
    groups = [msgspec.structs.replace(one, stall_s=one.stall_s + 1.0) for one in beat.groups]
    return msgspec.structs.replace(beat, groups=tuple(groups))


def _placed(beats: Sequence[wire.RankBeat], before: Sequence[Places]) -> tuple[list[Places], float]:
    started_s = time.process_time()
    found = [places.of(one.rank, one, was) for one, was in zip(beats, before, strict=True)]
    return found, time.process_time() - started_s


def _heartbeat(data: bytes) -> wire.Heartbeat:
    frame = wire.decode_from_agent(data)
    assert isinstance(frame, wire.Heartbeat)  # written by `_frame`
    return frame
