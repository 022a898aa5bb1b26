"""How long one diagnosis takes at scale: python bench/diagnosis.py [--ranks 16384] [--repeats 5].

Builds a mesh of tensor, data and pipeline groups in which one rank never enters its next
collective, and times `diagnose` alone. The bar: 16,384 ranks <= 0.5 s, 65,536 <= 2 s.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.property import mesh

from hangwatch_server.diagnose import diagnose

SHAPES = {1024: (8, 16, 8), 4096: (8, 32, 16), 16384: (4, 256, 16), 65536: (4, 1024, 16)}
CULPRIT_SHARE = 0.37  # anywhere but at an end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, choices=sorted(SHAPES), default=16384)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--silent", type=float, default=0.0, help="share of other ranks silent")
    options = parser.parse_args()

    job = mesh.mesh(*SHAPES[options.ranks], with_world=False)
    culprit = int(options.ranks * CULPRIT_SHARE)
    done = mesh.run(job, {culprit: 4})
    step = round(1 / options.silent) if options.silent else 0
    silent = [r for r in range(options.ranks) if step and r % step == 1 and r != culprit]
    snapshot = mesh.snapshot(job, [culprit], done, silent=silent)

    times_s = []
    for _ in range(options.repeats):
        started_s = time.perf_counter()
        found = diagnose(snapshot)
        times_s.append(time.perf_counter() - started_s)
    is_right = found[0].culprit_ranks == str(culprit)

    print(f"{'ranks':>8} {'groups':>8} {'silent':>8} {'median s':>9} {'max s':>8}  culprit")
    print(
        f"{options.ranks:>8} {len(job.groups):>8} {len(silent):>8} "
        f"{statistics.median(times_s):>9.3f} {max(times_s):>8.3f}  "
        f"{'right' if is_right else 'WRONG: ' + found[0].culprit_ranks}"
    )


if __name__ == "__main__":
    main()
