"""A healthy job for many hours, on a fake clock: python bench/soak.py [--hours 66] [--profile all].

Runs diagnosis and detection over a simulated job of eight ranks on two nodes: steps of 0.3, 3 or
60 s with 30 % jitter, checkpoints, evaluations, slow storage, compilations, loader hiccups, agents
and servers that restart. The bar: 0 alerts. Prints the suspicions per day, which nobody is told of.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.soak.looks import Soak, Tally

from hangwatch_server.model import State

PROFILES = {"short": 0.3, "middle": 3.0, "long": 60.0}
HEAD = (
    "profile",
    "step s",
    "hours",
    "looks",
    "pauses",
    "expected",
    "slow",
    "suspected/day",
    "alerts",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=66.0)
    parser.add_argument("--profile", choices=[*PROFILES, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    names = list(PROFILES) if options.profile == "all" else [options.profile]
    print(" ".join(f"{word:>13}" for word in HEAD), flush=True)
    alerts = 0
    for name in names:
        started_s = time.perf_counter()
        tally = Soak(PROFILES[name], options.hours, options.seed).run()
        print(row(name, tally), f"  ({time.perf_counter() - started_s:.0f} s)", flush=True)
        for alert in tally.alerts:
            print("  ALERT", alert)
        alerts += len(tally.alerts)
    sys.exit(1 if alerts else 0)


def row(name: str, tally: Tally) -> str:
    per_day = sum(tally.suspicions.values()) / (tally.hours / 24)
    cells = (
        name,
        PROFILES[name],
        f"{tally.hours:g}",
        tally.looks,
        sum(tally.paused.values()),
        tally.states[State.EXPECTED_WAIT],
        tally.states[State.SLOW],
        f"{per_day:.1f}",
        len(tally.alerts),
    )
    return " ".join(f"{cell:>13}" for cell in cells)


if __name__ == "__main__":
    main()
