"""Following real processes: ends with their cause, newer processes, bare ranks, children."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.agent import conftest as make

from hangwatch_agent import limits, process, ranks, wire
from hangwatch_agent.node import Node

BARE = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
FAMILY = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()']); input()"


def test_killed_rank_is_gone_with_its_signal(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)
    make.look(node)
    item = node.tracked[0]

    os.kill(rank_process.pid, signal.SIGKILL)
    make.wait_for(lambda: _is_zombie(rank_process.pid), "the process ends")
    item.process.note_exit()
    rank_process.wait()
    make.look(node)
    facts = item.process.observe(time.monotonic(), None)

    assert (facts.state, facts.exit_signal) == ("gone", signal.SIGKILL)
    assert facts.exit_reason == "killed by SIGKILL"
    assert node.find("run:job", 0) is item


def test_newer_process_takes_the_rank(
    run_dir: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    old, new = start("-c", make.SLEEPER), start("-c", make.SLEEPER)
    node = make.node_of(run_dir)
    make.write_record(run_dir, old.pid)
    make.look(node)
    old.kill()
    old.wait()
    make.write_record(run_dir, new.pid)

    make.look(node)
    node.poll(time.monotonic() + 2, time.monotonic_ns())

    assert [item.identity.pid for item in node.tracked] == [new.pid]


def test_bare_rank_is_adopted_only_when_asked(
    run_dir: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    rank = start("-c", make.SLEEPER, **BARE)
    assert rank.stdout is not None
    rank.stdout.readline()
    shy, adopting = make.node_of(run_dir), make.node_of(run_dir, adopt=True)

    make.look(shy)
    make.look(adopting)

    assert shy.tracked == []
    (beat,) = [
        item.beat for item in adopting.translate(time.monotonic_ns()) if item.beat.pid == rank.pid
    ]
    assert (beat.rank, beat.depth, beat.is_rank_certain) == (1, wire.Depth.BARE, False)


def test_child_that_outlives_its_rank_does_not_take_its_place(
    run_dir: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    rank = start("-c", FAMILY, **BARE, HANGWATCH_RUN_DIR=str(run_dir))
    node = make.node_of(run_dir)

    def child() -> int | None:
        make.look(node)
        return next((pid for item in node.tracked for pid in item.process.offspring.known), None)

    orphan = make.wait_for(child, "the child is seen")
    rank.kill()
    rank.wait()
    node.scan(time.monotonic())
    node.poll(time.monotonic() + 2, time.monotonic_ns())
    node.scan(time.monotonic() + 3)

    assert process.default_proc().stat(orphan) is not None
    assert [(item.identity.pid, item.facts.state) for item in node.tracked] == [(rank.pid, "gone")]


def test_worker_never_seen_below_its_rank_does_not_take_its_place_either(
    run_dir: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    environ = {**BARE, "HANGWATCH_RUN_DIR": str(run_dir)}
    rank = start("-c", make.SLEEPER, **environ)
    node = make.node_of(run_dir)
    make.wait_for(lambda: make.look(node) or node.tracked, "the rank is found")
    worker = start("-c", make.SLEEPER, **environ)  # as one that was forked between two scans
    ticks = process.default_proc().stat(worker.pid)
    assert ticks is not None
    rank.kill()
    rank.wait()
    node.poll(time.monotonic() + 2, time.monotonic_ns())
    (item,) = node.tracked
    item.process.alive_at_ticks = ticks.start_ticks + 1000  # it ended ten seconds later

    node.scan(time.monotonic() + 3)

    assert [item.identity.pid for item in node.tracked] == [rank.pid]


def test_main_thread_that_blocks_is_still_and_says_for_how_long(
    run_dir: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    rank = start("-c", make.SLEEPER, **BARE, HANGWATCH_RUN_DIR=str(run_dir))
    assert rank.stdout is not None
    rank.stdout.readline()
    node = make.node_of(run_dir)
    make.look(node)
    now_s = time.monotonic()

    later_s = itertools.count(5, 5)  # facts are read again only when time has passed

    def still_s() -> float | None:
        node.poll(now_s + next(later_s), time.monotonic_ns())
        found = node.tracked[0].facts.main_still_s
        return found if found and found >= 5 else None

    assert make.wait_for(still_s, "the main thread is seen to stand still") >= 5


def test_process_of_the_own_run_dir_is_a_bare_rank_and_its_child_is_not(
    run_dir: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    rank = start("-c", FAMILY, **BARE, HANGWATCH_RUN_DIR=str(run_dir))
    node = make.node_of(run_dir)
    proc = process.default_proc()

    def child() -> int | None:
        make.look(node)
        items = [item for item in node.tracked if item.identity.pid == rank.pid]
        return next((pid for item in items for pid in item.process.offspring.known), None)

    pid = make.wait_for(child, "the child is seen")

    assert [item.identity.pid for item in node.tracked] == [rank.pid]
    stat = proc.stat(pid)
    assert stat is not None
    assert stat.parent == rank.pid


PROGRAM_BY_THREAD = """
import subprocess, sys, threading
sys.stdin.readline()
command = ["sh", "-c", "sleep 60; true"]
threading.Thread(target=subprocess.run, args=(command,), daemon=True).start()
print(flush=True)
sys.stdin.read()
"""


def test_program_started_after_the_last_scan_is_shown_at_the_next_look(
    run_dir: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """A node with thousands of processes is scanned every half minute or so."""
    rank = start("-c", PROGRAM_BY_THREAD, **BARE, HANGWATCH_RUN_DIR=str(run_dir))
    node = make.node_of(run_dir)
    make.wait_for(lambda: make.look(node) or node.tracked, "the rank is found")
    assert rank.stdin is not None
    rank.stdin.write(b"\n")
    rank.stdin.flush()
    looks = itertools.count()

    def names() -> set[str]:
        node.poll(time.monotonic() + 6 * next(looks), time.monotonic_ns())  # no scan
        return {child.name for item in node.tracked for child in item.facts.children}

    make.wait_for(lambda: names() == {"sh", "sleep"}, "the shell and its program are shown")


def test_fresh_record_without_visible_process_is_neither_listed_nor_removed(run_dir: Path) -> None:
    path = make.write_record(run_dir, os.getpid(), ticks=7)
    node = make.node_of(run_dir)
    now_s = time.monotonic()

    node.scan(now_s)
    node.scan(now_s + 11)

    assert path.exists()  # its process may live in a pid namespace that cannot be seen from here
    assert node.tracked == []


def later(node: Node, seconds: float) -> wire.RankBeat:
    """What the node says of its only rank once so many seconds have passed."""
    node.poll(time.monotonic() + seconds, time.monotonic_ns() + int(seconds * 1e9))
    (told,) = node.translate(time.monotonic_ns() + int(seconds * 1e9))
    return told.beat


def test_rank_whose_record_is_removed_lacks_it_and_is_not_called_unresponsive(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    path = make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)
    make.look(node)
    node.tracked[0].socket_answers = False

    path.unlink()
    at_once, beat = later(node, 1.5), later(node, 5)
    node.scan(time.monotonic() + 6)
    after_a_scan = later(node, 7)

    assert at_once.depth is wire.Depth.PROBE  # a rank that ends takes its files with it
    assert (beat.rank, beat.depth, beat.is_rank_certain) == (0, wire.Depth.BARE, True)
    assert not beat.process.is_unresponsive
    assert beat.lacks == (ranks.RECORD_GONE,)
    assert after_a_scan.lacks == beat.lacks


def test_record_that_comes_back_is_followed_again(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    path = make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)
    make.look(node)
    path.unlink()
    gone = later(node, 5)

    make.write_record(run_dir, rank_process.pid)
    back = later(node, 2)

    assert gone.depth is wire.Depth.BARE
    assert (back.depth, back.lacks) == (wire.Depth.PROBE, ())
    assert len(back.groups) == 1


def test_last_word_of_a_rank_that_ended_stays_though_its_files_are_cleared(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    path = make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)
    make.look(node)

    rank_process.kill()
    rank_process.wait()
    node.poll(time.monotonic() + 2, time.monotonic_ns())
    path.unlink()

    assert len(later(node, 5).groups) == 1


def test_rank_over_a_limit_of_the_server_is_bare_and_the_others_stay_whole(
    run_dir: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hostile, honest = (start("-c", make.SLEEPER) for _ in range(2))
    make.write_record(run_dir, hostile.pid, rank=0)
    make.write_record(run_dir, honest.pid, rank=1)
    node = make.node_of(run_dir)
    make.look(node)
    whole = limits.problem
    monkeypatch.setattr(
        limits, "problem", lambda beat: "too much" if beat.rank == 0 else whole(beat)
    )

    bad, good = sorted((told.beat for told in node.translate(time.monotonic_ns())), key=_rank)

    assert (bad.depth, bad.groups) == (wire.Depth.BARE, ())
    assert "too much" in bad.lacks[0]
    assert (good.depth, good.lacks) == (wire.Depth.PROBE, ())


def _rank(beat: wire.RankBeat) -> int:
    return beat.rank


def test_files_of_a_rank_are_removed_ten_minutes_after_its_end(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    path = make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)
    make.look(node)
    rank_process.kill()
    rank_process.wait()
    now_s = time.monotonic() + 2

    node.poll(now_s, time.monotonic_ns())
    node.scan(now_s + 590)
    kept = [item.facts.state for item in node.tracked]
    node.scan(now_s + 610)

    assert kept == ["gone"]
    assert node.tracked == []
    assert not path.exists()


def _is_zombie(pid: int) -> bool:
    stat = process.default_proc().stat(pid)
    return stat is not None and stat.state == "Z"
