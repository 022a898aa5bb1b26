"""What the probe costs a trainer: all_reduce time with and without it, in one pair of gloo ranks.

The probe is switched in-process in ABBA blocks of short legs, so that drift of the machine cancels;
a suspended wait is resumed where it was left, so beats stay at one per second of measured time. The
ratio of the lower quartiles of the legs comes with a bootstrap confidence interval over blocks. A
quartile does not see the few legs in which a beat falls, so the share of time that beats take is
measured too and added to the interval. It measures the running step only, not start-up.
Run: `python bench/probe_cost.py [--seconds S]`.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BAR = 1.01  # all_reduce with / without the probe
RESAMPLES = 2000
ELEMENTS = (1, 65536)
LEG_S = 0.03  # short, so that many blocks fit
FIRST_CALLS = 100
Block = tuple[tuple[float, float], tuple[float, float]]  # legs with the probe, legs without
START_S = 25.0  # for importing torch on a busy machine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="measured time per tensor size")
    parser.add_argument("--rank", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--store", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank >= 0:
        return _rank(options.rank, options.store, options.seconds)
    with tempfile.TemporaryDirectory(prefix="hwb-") as folder:
        return _pair(Path(folder), options.seconds)


def _pair(folder: Path, seconds: float) -> int:
    environment = {
        **os.environ,
        "HANGWATCH_RUN_DIR": str(folder / "run"),
        "OMP_NUM_THREADS": "1",
    }
    own = [sys.executable, __file__, "--seconds", str(seconds)]
    ranks = [
        subprocess.Popen(
            [*own, "--store", str(folder / "store"), "--rank", str(rank)],
            env=environment,
            start_new_session=True,
        )
        for rank in (0, 1)
    ]
    try:
        return max(abs(rank.wait(START_S + 3 * seconds)) for rank in ranks)
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()


def _rank(rank: int, store: str, seconds: float) -> int:
    # A core for each rank, with all its threads: migration between cores is most of the noise, and
    # the probe's thread has to share the trainer's core.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})

    import torch
    import torch.distributed as dist

    import hangwatch.auto  # noqa: F401 - starts the probe that is measured

    probe = sys.modules["_hangwatch_probe"]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    if rank == 0:
        print(f"{'tensor':>12} {'with µs':>9} {'without µs':>11} {'ratio':>8}  95 % interval")
    is_good = True
    beats = Beats(probe._running)
    for elements in ELEMENTS:
        blocks = _measure(probe._running, torch.ones(elements), seconds)
        if rank == 0:
            is_good = _print(elements, blocks, beats.mean_s()) and is_good
    if rank == 0:
        print(f"a beat takes {beats.mean_s() * 1e6:.0f} µs, once a second")
    dist.barrier()
    dist.destroy_process_group()
    return 0 if is_good else 1


class Beats:
    """Times the beats of the running probe: the whole work of its thread."""

    def __init__(self, running: Any) -> None:
        self._took_s: list[float] = []
        tick = running._tick

        def timed(**options: Any) -> Any:
            began = time.perf_counter()
            result = tick(**options)
            self._took_s.append(time.perf_counter() - began)
            return result

        running._tick = timed

    def mean_s(self) -> float:
        """Also their share of the time, since there is one a second."""
        return statistics.mean(self._took_s) if self._took_s else 0.0


def _measure(running: Any, tensor: Any, seconds: float) -> list[Block]:
    """Seconds per call of each leg; a block is ABBA: four legs, and two settlings not counted."""
    blocks: list[Block] = []
    calls = _calls(tensor)
    for _ in range(max(8, int(seconds / (5 * LEG_S)))):
        first = _leg(tensor, calls)
        running.suspend()
        _settle(tensor, calls)
        without = [_leg(tensor, calls), _leg(tensor, calls)]
        running.resume()
        _settle(tensor, calls)
        last = _leg(tensor, calls)
        blocks.append(((first, last), (without[0], without[1])))
    return blocks


def _settle(tensor: Any, calls: int) -> None:
    """Let the switch itself, a thread that starts or ends, pass before anything is measured."""
    _leg(tensor, max(1, calls // 2))


def _calls(tensor: Any) -> int:
    """How many calls fill a leg; both ranks must agree, so they take the slower one's word."""
    import torch
    import torch.distributed as dist

    _leg(tensor, FIRST_CALLS)
    per_call_s = torch.tensor([_leg(tensor, FIRST_CALLS)])
    dist.all_reduce(per_call_s, op=dist.ReduceOp.MAX)
    return max(10, int(LEG_S / float(per_call_s)))


def _leg(tensor: Any, calls: int) -> float:
    import torch.distributed as dist

    dist.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(tensor)
    return (time.perf_counter() - began) / calls


def _print(elements: int, blocks: list[Block], beats: float) -> bool:
    """One line of the table; whether the interval does not lie wholly over the bar."""
    low, high = (bound + beats for bound in interval(blocks))
    verdict = "within" if high <= BAR else "interval reaches over" if low <= BAR else "over"
    print(
        f"{elements * 4:>10} B {quartile(blocks, 0) * 1e6:>9.1f} {quartile(blocks, 1) * 1e6:>11.1f}"
        f" {ratio(blocks) + beats:>8.4f}  {low:.4f} .. {high:.4f}  {verdict} {BAR}"
        f"  ({len(blocks)} blocks)",
        flush=True,
    )
    return low <= BAR


def quartile(blocks: list[Block], side: int) -> float:
    """Lower quartile of the legs with (0) or without (1) the probe.

    Whatever else the machine does only ever adds to a leg, so the quick legs say what a call costs.
    """
    legs = sorted(leg for block in blocks for leg in block[side])
    return legs[len(legs) // 4]


def ratio(blocks: list[Block]) -> float:
    return quartile(blocks, 0) / quartile(blocks, 1)


def interval(blocks: list[Block], seed: int = 7) -> tuple[float, float]:
    """Bootstrap 95 % interval of `ratio`, blocks resampled with replacement."""
    source = random.Random(seed)
    found = sorted(ratio(source.choices(blocks, k=len(blocks))) for _ in range(RESAMPLES))
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES)]


if __name__ == "__main__":
    sys.exit(main())
