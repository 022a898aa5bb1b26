"""The probe inside real gloo jobs: what its records say, and who must not have one."""

from __future__ import annotations

import os
import shutil
import socket

import pytest
from tests.integration.probe.conftest import Job, Starter, wait_for

from hangwatch_agent import records
from hangwatch_agent.payload import CallPayload, GroupPayload, RecordPayload

pytestmark = pytest.mark.acceptance


def payload(job: Job, rank: int) -> RecordPayload | None:
    record = job.records().get(rank)
    return None if record is None else record.payload


def default_group(job: Job, rank: int) -> GroupPayload | None:
    found = payload(job, rank)
    return found.groups[0] if found is not None and found.groups else None


def answers_ping(path: str) -> bool:
    """Whether the worker server's C++ thread answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(60)
        line.connect(path)
        line.sendall(b"POST /handler/ping HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        return b"200" in line.recv(256)


def test_place_of_each_call_is_noted_where_it_is_asked_for(start: Starter) -> None:
    job = start("sited.py", nproc=2, has_call_sites=True)

    def stalled(rank: int) -> GroupPayload | None:
        group = default_group(job, rank)
        is_current = group is not None and group.dumped_counter == group.counter
        return group if group is not None and is_current and group.tail is not None else None

    found = wait_for(lambda: stalled(0), "a long record of rank 0")
    assert found.tail is not None
    kinds = found.tail.kinds
    called = [kinds[kind].site.partition(" in ")[2] for _, kind in found.tail.calls]
    called += [entry.site.partition(" in ")[2] for entry in found.entries]

    assert set(called) == {"step", "metric"}
    assert [one.partition(":")[0] for one in {kind.site for kind in kinds}] == ["sited.py"] * 2
    assert called[-12:] == ["step", "metric"] * 6
    other = wait_for(lambda: stalled(1), "a long record of rank 1")
    sites = [entry.site.partition(" in ")[2] for entry in other.entries]
    assert sites.count("step") == sites.count("metric") + 1  # one was left out


def test_group_that_cannot_end_stays_in_sight_until_it_does(start: Starter) -> None:
    job = start("left_open.py", nproc=2)

    def stuck() -> RecordPayload | None:
        found = payload(job, 0)
        newest = found.groups[0].entries[-1:] if found is not None and found.groups else []
        is_destroying = found is not None and found.groups and found.groups[0].seq == 6
        return found if is_destroying and newest and not newest[0].retired else None

    found = wait_for(stuck, "the open collective of a group that is being destroyed")
    assert not found.destroyed
    job.signal("go")

    left = wait_for(lambda: (one := payload(job, 0)) and one.destroyed and one, "rank 0 has left")
    assert left.groups == []
    job.signal("leave")
    assert job.wait() == 0


@pytest.fixture(scope="module")
def calls_job(start: Starter) -> Job:
    job = start("calls.py", nproc=2)
    wait_for(lambda: job.has("ready-0") and job.has("ready-1"), "both ranks at the end")
    return job


class TestTorchrun:
    """One job, looked at while rank 0 waits in recv, and again after it went on."""

    def test_waiting_receive_names_its_peer(self, calls_job: Job) -> None:
        def waiting() -> CallPayload | None:
            found = payload(calls_job, 0)
            calls = found.calls if found is not None else []
            return next((call for call in calls if call.tag == 9), None)

        call = wait_for(waiting, "the receive in the record")

        assert (call.op, call.peer, call.tag, call.group) == ("recv", 1, 9, "0")
        assert call.blocking
        assert call.seq == 2

    def test_groups_come_from_torch_itself(self, calls_job: Job) -> None:
        found = wait_for(lambda: payload(calls_job, 0), "a record of rank 0")

        assert (found.certain, found.rank, found.world_size) == (True, 0, 2)
        assert [(group.ranks, group.backend) for group in found.groups] == [("0-1", "gloo")] * 2
        assert found.groups[0].description == "default_pg"
        assert found.environment["HANGWATCH_JOB"] == "probed"

    def test_live_number_is_the_recorders_own_and_equal_on_all_ranks(self, calls_job: Job) -> None:
        def dumped(rank: int) -> GroupPayload | None:
            group = default_group(calls_job, rank)
            is_current = group is not None and group.dumped_counter == group.counter
            return group if group is not None and is_current and group.entries else None

        found = [wait_for(lambda r=rank: dumped(r), "entries") for rank in (0, 1)]

        # 3 all_reduce, 2 numbers burned by monitored_barrier, broadcast, 2 of all_gather_object
        assert [group.seq for group in found] == [8, 8]
        assert [group.entries[-1].seq for group in found] == [8, 8]
        roots = [{entry.op: entry.root for entry in one.entries}["broadcast"] for one in found]
        assert roots == [0, 0]
        assert [entry.op for entry in found[0].entries] == [
            *["all_reduce"] * 3,
            "broadcast",
            *["all_gather"] * 2,
        ]
        assert found[0].counter != found[0].seq

    def test_finished_sends_and_receives_are_counted(self, calls_job: Job) -> None:
        def counted() -> RecordPayload | None:
            found = payload(calls_job, 1)
            is_whole = found is not None and sum(one.posted for one in found.p2p) == 3
            return found if is_whole else None

        found = wait_for(counted, "three messages in rank 1's record")

        counts = {(one.peer, one.send): (one.posted, one.done) for one in found.p2p}
        assert counts == {(0, True): (1, 1), (0, False): (2, 2)}

    def test_launcher_and_loader_workers_have_no_record(self, calls_job: Job) -> None:
        pids = {records.read(path).pid for path in records.scan(calls_job.run_dir)}

        assert len(pids) == 2
        assert calls_job.process.pid not in pids

    def test_job_that_goes_on_shows_a_new_epoch_and_leaves_in_order(self, calls_job: Job) -> None:
        calls_job.signal("go")
        wait_for(lambda: calls_job.has("again-0") and calls_job.has("again-1"), "second init")

        def remade() -> GroupPayload | None:
            group = default_group(calls_job, 0)
            is_used = group is not None and group.epoch == 2 and bool(group.seq)
            return group if is_used else None

        group = wait_for(remade, "the group made again")
        assert (group.name, group.ranks, group.seq) == ("0", "0-1", 1)
        calls_job.signal("leave")
        assert calls_job.wait() == 0
        last = calls_job.records()[0]
        assert last.payload is not None
        assert last.payload.destroyed
        assert last.payload.shutting_down
        assert last.exit is not None
        assert (last.exit.code, last.exit.exception) == (0, "")
        assert not os.path.exists(last.payload.socket)


def test_spawned_ranks_are_seen_and_a_held_gil_leaves_the_socket_answering(start: Starter) -> None:
    job = start("spawned.py")
    wait_for(lambda: job.has("ready-0") and job.has("ready-1"), "spawned ranks")
    wait_for(lambda: set(job.records()) == {0, 1}, "two records")
    job.signal("hold")
    wait_for(lambda: job.has("holding"), "the held GIL")
    held = payload(job, 1)
    assert held is not None

    # Rank 0 goes on beating: three of its beats are time in which rank 1 wrote at most one.
    other = payload(job, 0)
    assert other is not None
    wait_for(lambda: (payload(job, 0) or other).beat >= other.beat + 3, "three more beats")
    stale = payload(job, 1)

    assert stale is not None
    assert stale.beat <= held.beat + 1
    assert not job.has("met-1")
    assert answers_ping(stale.socket)
    waiting = wait_for(
        lambda: next(
            (e for e in (default_group(job, 0) or stale.groups[0]).entries if not e.retired), None
        ),
        "rank 0's entry",
    )
    assert (waiting.op, waiting.seq) == ("all_reduce", 2)
    job.open_gate()
    job.wait()
    mark = job.records()[1].exit
    assert mark is not None


def test_rank_that_takes_the_gil_right_after_init_is_known_with_its_group(start: Starter) -> None:
    job = start("held_at_once.py")

    found = wait_for(lambda: job.records().get(1), "the record of the rank that holds the GIL")

    assert not job.has("met-1")  # it still held the GIL when its record could be read
    payload_then = found.payload
    assert payload_then is not None
    assert (payload_then.certain, payload_then.initialised, payload_then.waits) == (True, True, [])
    assert [(group.ranks, group.backend) for group in payload_then.groups] == [("0-1", "gloo")]
    job.open_gate()
    wait_for(lambda: job.has("met-0") and job.has("met-1"), "both ranks go on")
    job.signal("leave")
    assert job.wait() == 0


def test_wait_for_absent_peers_is_visible_before_initialisation(start: Starter) -> None:
    job = start("alone.py", "2")

    def waiting() -> RecordPayload | None:
        found = [records.read(path).payload for path in records.scan(job.run_dir)]
        return next((one for one in found if one is not None and one.waits), None)

    found = wait_for(waiting, "the wait in the record")

    assert not found.initialised
    assert not found.certain
    (wait,) = found.waits
    assert (wait.what, wait.expected, wait.rank) == ("init_process_group", 2, 0)
    assert wait.detail == f"file://{job.signals}/store"
    job.end()
    assert next(iter(records.read(path) for path in records.scan(job.run_dir))).exit is None


@pytest.mark.parametrize(
    ("how", "code", "exception"), [("exit", 3, ""), ("raise", 1, "LookupError")]
)
def test_one_import_line_is_enough_and_the_exit_is_marked(
    start: Starter, how: str, code: int, exception: str
) -> None:
    job = start("alone.py", "1", "auto", how, has_injection=False)

    def announced() -> RecordPayload | None:
        found = payload(job, 0)
        return found if found is not None and found.phase else None

    found = wait_for(announced, "the announced phase")
    assert (found.phase, found.phase_limit_s, found.step) == ("checkpoint", 30.0, 7)
    job.signal("leave")

    assert job.wait() == code
    mark = job.records()[0].exit
    assert mark is not None
    assert (mark.code, mark.exception) == (code, exception)


def test_files_that_are_cleared_under_a_running_rank_come_back(start: Starter) -> None:
    job = start("alone.py", "1")
    before = wait_for(lambda: payload(job, 0), "the record")
    shutil.rmtree(job.run_dir)

    after = wait_for(lambda: payload(job, 0), "the record made anew")

    assert after.beat > before.beat
    assert answers_ping(after.socket)
    job.signal("leave")
    assert job.wait() == 3
    mark = job.records()[0].exit
    assert mark is not None
    assert mark.code == 3


def test_job_whose_run_dir_is_not_safe_runs_unwatched_and_says_so(
    start: Starter,
) -> None:
    job = start("alone.py", "1", run_dir_mode=0o777)
    wait_for(lambda: job.has("ready"), "the rank goes on")
    job.signal("leave")

    assert job.wait() == 3
    assert job.log.read_text().count("is not watched") == 1
    assert os.listdir(job.run_dir) == []


def test_compiler_is_kept_out_of_the_probe(start: Starter) -> None:
    job = start("compiled.py")

    assert job.wait() == 0
    found = (job.signals / "compiled").read_text()
    assert "compiled.py" in found
    assert "hangwatch" not in found
    assert "_getframe" not in found


@pytest.mark.parametrize("word", ["1", "True"])
def test_kill_switch_leaves_no_trace(
    start: Starter, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("HANGWATCH_DISABLE", word)
    job = start("alone.py", "1")
    wait_for(lambda: job.has("ready"), "the program's end")
    job.signal("leave")

    assert job.wait() == 3
    assert not job.run_dir.exists()
