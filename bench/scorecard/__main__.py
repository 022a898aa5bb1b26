"""Plays the cases, asks torch's own tools, prints the table: make scorecard, or

python -m bench.scorecard [--cases a,b] [--family bare] [--from-json FILE] [--skip-peers]

After the programs come jobs that are only generated, with their truth, for `diagnose` alone.

docs/scorecard.md is written when every case has its row. Rows are kept in the file of --from-json
as they come: with it a run that was cut short goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.scorecard import page, playing, rows  # noqa: E402

from hangwatch_server.demo import cases  # noqa: E402
from hangwatch_server.demo.cases import FAMILIES, Case  # noqa: E402
from hangwatch_server.demo.conductor import ALIVE  # noqa: E402

PAGE = ROOT / "docs" / "scorecard.md"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    options = _parser().parse_args()
    chosen = _chosen(options.cases, options.family)
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupt)
    known = rows.read(options.from_json) if options.from_json else {}
    to_play = [case for case in chosen if case.name not in known]
    try:
        _play(to_play, known, options)
        _report(known, options)
    except KeyboardInterrupt:
        print("\nended early", flush=True)
        return 130
    return 0


def _play(to_play: Sequence[Case], known: dict[str, rows.Row], options: argparse.Namespace) -> None:
    if not to_play:
        return
    played = playing.play(to_play, at_once=options.jobs, asks_peers=not options.skip_peers)
    for number, row in enumerate(played, 1):
        known[row.name] = row
        if options.from_json:
            rows.append(options.from_json, [row])
        times = f"named {page.seconds(row.named_s):>5}  hung {page.seconds(row.hung_s):>5}"
        outcome = "right" if row.is_right else "; ".join(row.differences)
        print(f"{number:>3}/{len(to_play)} {row.name:<28} {times}  {outcome}", flush=True)


def _report(known: dict[str, rows.Row], options: argparse.Namespace) -> None:
    """Print the page; write it if no case is missing, or where it was asked for."""
    everything = cases.load()
    ordered = [known[case.name] for case in everything if case.name in known]
    missing = [case.name for case in everything if case.name not in known]
    lines = list(page.lines(ordered, missing))
    if options.generated:
        lines += page.generated(_generated(options.generated))
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write or not missing:
        target = options.write or PAGE
        target.write_text(text, encoding="utf-8")
        print(f"written: {target}")
    else:
        print(f"{len(missing)} cases have no row: {PAGE.relative_to(ROOT)} is left as it is")


def _generated(jobs: int) -> list[str]:
    """What bench/generated.py prints; it has processes of its own, which end with it."""
    command = [sys.executable, str(ROOT / "bench" / "generated.py"), "--jobs", str(jobs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        return process.communicate()[0].splitlines()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _chosen(names: str, family: str) -> list[Case]:
    if names:
        return [cases.find(name) for name in names.split(",")]
    return [case for case in cases.load() if family in ("", case.family)]


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the end is under way; a second one must not cut it
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scorecard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", default="", help="names of cases, separated by commas")
    parser.add_argument("--family", default="", choices=("", *FAMILIES), help="one family only")
    parser.add_argument("--from-json", type=Path, help="rows to start from, and to add to")
    parser.add_argument("--write", type=Path, help="write the page here, whatever is missing")
    parser.add_argument("--jobs", type=int, default=ALIVE, help="cases at once")
    parser.add_argument(
        "--generated", type=int, default=2000, help="single faults to generate; 0: no such part"
    )
    parser.add_argument("--skip-peers", action="store_true", help="do not ask torch's own tools")
    return parser


if __name__ == "__main__":
    sys.exit(main())
