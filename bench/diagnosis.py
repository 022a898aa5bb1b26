"""How long one diagnosis takes at scale: python bench/diagnosis.py [--ranks 16384] [--repeats 5].

A job of two groups per rank and 128 more, in which one rank stops before its next collective and
the wait has spread as far as it can. Times `diagnose` alone, in CPU seconds: with none and with
10 % of the other ranks silent, and where NCCL's calls are queued. As in the server, each look is
the first at its heartbeats: before it they are decoded anew and taken in by the board's own slots,
which is not timed here, and nothing of one look is kept for the next. The bar: 16,384 ranks
<= 0.5 s, 65,536 <= 2 s.

What the board works out as a heartbeat arrives is no part of a look, so that is told too: CPU
microseconds per rank's heartbeat from the frame to the board, with entries that have changed and
with entries that the agent kept, and how much of it goes to the rank's places.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec
from bench import arrivals
from bench.arrivals import Arrivals
from tests.synthetic import damage, large

from hangwatch_agent import wire
from hangwatch_server.board.slots import Slot
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import RankView, Snapshot
from hangwatch_server.simulate.telemetry import Shape

SIZES = (4096, 16384, 65536)
CASES = ((Shape.GLOO, 0.0), (Shape.GLOO, 0.1), (Shape.NCCL, 0.0))  # and share of silent ranks

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(wire.RankBeat | None)


@dataclass(frozen=True, slots=True)
class Timing:
    shape: Shape
    ranks: int
    groups: int
    silent: int
    median_s: float  # CPU time
    most_s: float
    is_right: bool
    arrivals: Arrivals


def measure(ranks: int, share: float, repeats: int = 5, shape: Shape = Shape.GLOO) -> Timing:
    """Diagnose the same job `repeats` times, each time by heartbeats that have just come."""
    job = large.stopped(ranks, shape)
    damaged = damage.silent(job, share, Random(ranks)) if share else damage.none(job, 0, Random())
    sent = {rank: _ENCODER.encode(view.beat) for rank, view in damaged.later.ranks.items()}
    times_s = [_cpu_s(_arrived(damaged.later, sent)) for _ in range(repeats)]
    found = diagnose(damaged.later)
    return Timing(
        shape,
        ranks,
        len(job.mesh.groups),
        len(damaged.touched),
        statistics.median(times_s),
        max(times_s),
        found[0].culprit_ranks == str(min(job.truth.culprits)),
        arrivals.measure(damaged.later),
    )


def _arrived(snapshot: Snapshot, sent: dict[int, bytes]) -> Snapshot:
    """The snapshot with heartbeats that lie in memory as the server has received them."""
    ranks = {view.rank: _seated(view, sent[view.rank]) for view in snapshot.ranks.values()}
    return replace(snapshot, ranks=ranks)


def _seated(view: RankView, sent: bytes) -> RankView:
    """As the board shows a rank whose heartbeat it has just taken in."""
    beat = _DECODER.decode(sent)
    if beat is None:
        return view
    slot = Slot(view.node, beat, heard_s=0.0, number=1, restart=0, alive_s=0.0)
    return replace(view, beat=slot.beat, places=slot.places)


def _cpu_s(snapshot: Snapshot) -> float:
    gc.collect()
    started_s = time.process_time()
    diagnose(snapshot)
    return time.process_time() - started_s


def growth(timings: list[Timing]) -> float | None:
    """The exponent of the time's growth with the ranks, from the smallest to the largest."""
    first, last = timings[0], timings[-1]
    if first.ranks == last.ranks:
        return None
    return math.log(last.median_s / first.median_s) / math.log(last.ranks / first.ranks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", choices=SIZES, default=SIZES)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()

    head = ("shape", "ranks", "groups", "silent", "median CPU s", "most CPU s", "culprit")
    print("{:>8} {:>8} {:>8} {:>8} {:>13} {:>11}  {:<8} {}".format(*head, "arrival of a heartbeat"))
    for shape, share in CASES:
        timings = []
        for ranks in options.ranks:
            one = measure(ranks, share, options.repeats, shape)
            timings.append(one)
            print(
                f"{one.shape:>8} {one.ranks:>8} {one.groups:>8} {one.silent:>8} "
                f"{one.median_s:>13.3f} {one.most_s:>11.3f}  "
                f"{'right' if one.is_right else 'WRONG':<8} {one.arrivals}",
                flush=True,
            )
        exponent = growth(timings)
        if exponent is not None:
            print(f"grows with the ranks to the power of {exponent:.2f}")


if __name__ == "__main__":
    main()
