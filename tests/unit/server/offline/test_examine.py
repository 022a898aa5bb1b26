"""Files of a hung job in, the verdict of a watched one out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support import left_behind

from hangwatch_agent.dumps import reading
from hangwatch_server import offline
from hangwatch_server.model import Condition, GroupView, Kind
from hangwatch_server.offline import File, JobReport, Outcome, snapshot

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def only(files: list[File]) -> JobReport:
    (job,) = offline.examine(files, NOW).jobs
    return job


@pytest.mark.parametrize("is_pickled", [False, True])
def test_the_rank_that_never_came_is_named(is_pickled: bool) -> None:
    files = left_behind.dumps()

    job = only([left_behind.pickled(file) for file in files] if is_pickled else files)

    assert (job.outcome, job.verdict.kind) == (Outcome.HANG, Kind.MISSING_RANKS)
    assert (job.verdict.culprit_ranks, job.verdict.waiting) == ("2", "0-1,3")
    assert job.verdict.summary.startswith("Rank 2 never entered all_reduce #6 of the default group")


def test_no_time_and_no_pid_is_made_up() -> None:
    verdict = only(left_behind.dumps()).verdict

    assert "3 ranks wait for it" in verdict.summary
    assert "pid" not in verdict.summary
    assert verdict.culprits[0].pid is None
    assert verdict.stalled_s == 0.0


def test_stacks_say_what_the_culprit_does() -> None:
    job = only([*left_behind.dumps(), left_behind.stacks(2), left_behind.stacks_json(0)])

    (culprit,) = job.verdict.culprits
    assert (culprit.condition, culprit.where) == (
        Condition.IN_DATALOADER,
        "storage.py:212 in read",
    )
    assert culprit.pid == 812
    assert job.tree is not None
    assert {group.ranks for group in job.tree.classes} == {"0", "2"}


def test_two_stack_files_of_a_rank_tell_frozen_from_moving() -> None:
    later = left_behind.PY_SPY_TEXT.replace("storage.py:212", "storage.py:230")
    files = [
        left_behind.stacks(0, name="1/rank_{}.txt"),
        left_behind.stacks(0, name="2/rank_{}.txt"),
        left_behind.stacks(1, name="1/rank_{}.txt"),
        left_behind.stacks(1, later, name="2/rank_{}.txt"),
    ]

    tree = only(files).tree

    assert tree is not None
    assert {group.ranks: group.is_frozen for group in tree.classes} == {"0": True, "1": False}


def test_stacks_alone_are_merged_and_blame_nobody() -> None:
    job = only([left_behind.stacks(0), left_behind.stacks_json(1)])

    assert job.outcome is Outcome.UNKNOWN
    assert job.verdict.culprits == ()
    assert "add the recorder's dumps" in job.verdict.summary
    assert job.tree is not None


def test_a_job_whose_calls_are_all_finished_has_no_hang() -> None:
    files = [left_behind.dump(rank, late=None, at=6) for rank in range(4)]
    done = [
        File(name=f.name, data=f.data.replace(b'"retired":false', b'"retired":true')) for f in files
    ]

    job = only(done)

    assert (job.outcome, job.verdict.culprit_ranks) == (Outcome.NOTHING, "")


def test_missing_dumps_are_said_and_not_blamed_for_sure() -> None:
    job = only(left_behind.dumps((0, 1, 3), late=None))

    assert any("1 of 4 ranks has no dump here (2)" in note for note in job.notes)


def test_a_group_of_one_caller_has_others_that_never_came() -> None:
    """DDP with a parameter unused on one rank: each waits in a group that the other has not."""
    first, second = left_behind.dump(0, late=1), left_behind.dump(1, late=1)
    other = json.loads(second.data)
    entry = {**other["entries"][-1], "process_group": ["1", "undefined"], "collective_seq_id": 1}
    other["entries"].append({**entry, "retired": False, "record_id": 99})
    files = [first, File(name=second.name, data=json.dumps(other).encode())]

    job = only(files)

    assert (job.verdict.kind, job.verdict.culprit_ranks) == (Kind.DEADLOCK, "0-1")
    assert any("members are taken from the calls" in note for note in job.notes)


def test_one_answer_of_ras_is_not_enough_and_two_are() -> None:
    once = only([left_behind.ras()])
    twice = only([left_behind.ras("ras-1.json"), left_behind.ras("ras-2.json")])

    assert once.outcome is Outcome.UNKNOWN
    assert any("ask it again" in note for note in once.notes)
    assert (twice.outcome, twice.verdict.culprit_ranks) == (Outcome.HANG, "2")


def test_dumps_of_two_jobs_are_two_verdicts() -> None:
    first = left_behind.dumps(late=2, name="a_rank{}.json")
    second = left_behind.dumps(range(2), late=1, name="b_rank{}.json")

    jobs = offline.examine([*first, *second], NOW).jobs

    assert [(job.name, job.verdict.culprit_ranks) for job in jobs] == [("a", "2"), ("b", "1")]


def test_of_two_files_with_one_name_only_the_one_left_out_is_said_to_be() -> None:
    """A browser sends names without their folders."""
    report = offline.examine([*left_behind.dumps(), left_behind.dump(0)], NOW)

    notes = [row.note for row in report.files if not row.is_used]
    assert notes == ["another dump of rank 0 is newer: trace_rank_0"]
    assert report.jobs[0].dumps == "0-3"


def test_of_two_dumps_of_a_rank_the_newer_one_counts() -> None:
    old = left_behind.dumps((2,), late=None, name="old/trace_rank_{}")
    data = old[0].data.replace(b"1795196826", b"1795196800")

    report = offline.examine([File(name=old[0].name, data=data), *left_behind.dumps()], NOW)

    (row,) = [row for row in report.files if not row.is_used]
    assert row.name == "old/trace_rank_2"
    assert "newer: trace_rank_2" in row.note
    assert report.jobs[0].verdict.culprit_ranks == "2"


def test_files_for_which_there_is_no_time_are_listed_as_unread() -> None:
    left = iter([True, True])

    report = offline.examine(left_behind.dumps(), NOW, may_go_on=lambda: next(left, False))

    assert [row.is_used for row in report.files] == [True, True, False, False]
    assert "no time left" in report.files[2].note


def test_the_document_speaks_the_words_of_the_contract() -> None:
    document = json.loads(offline.document(offline.examine(left_behind.dumps(), NOW)))

    verdict = document["jobs"][0]["verdict"]
    assert verdict["kind"] == "missing_ranks"
    assert all("for" in step and "for_" not in step for step in verdict["path"])
    assert verdict["path"]


def test_nothing_at_all_is_an_empty_report() -> None:
    report = offline.examine([], NOW)

    assert (report.jobs, report.files) == ((), ())


def _dump(config: dict[str, str], called: list[str]) -> File:
    entries = [
        {
            "process_group": [name, ""],
            "collective_seq_id": 1,
            "profiling_name": "gloo:all_reduce",
            "retired": False,
        }
        for name in called
    ]
    listed = {name: {"ranks": text} for name, text in config.items()}
    dump = {"version": "2.10", "pg_config": listed, "entries": entries}
    return File(name="rank_0.json", data=json.dumps(dump).encode())


@pytest.mark.parametrize(
    "file",
    [
        _dump({f"g{i}": "0-999999" for i in range(12)}, [f"g{i}" for i in range(12)]),
        _dump({f"g{i}": "0-1999" for i in range(400)}, [f"g{i}" for i in range(400)]),
        _dump({"0": "[0, 1999]"}, [f"g{i}" for i in range(400)]),
    ],
    ids=["more ranks than a job has", "the whole world, very often", "groups nobody tells of"],
)
def test_a_short_file_never_lists_more_ranks_than_are_looked_at(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    members: list[int] = []
    view = snapshot.GroupView

    def counted(**facts: Any) -> GroupView:
        members.append(len(facts["ranks"]))
        return view(**facts)

    monkeypatch.setattr(snapshot, "GroupView", counted)
    monkeypatch.setattr(snapshot, "MAX_MEMBERS", 10_000)
    monkeypatch.setattr(reading, "MAX_MEMBERS", 20_000)

    job = only([file])

    assert members
    assert sum(members) <= 10_000 + 400
    assert job.verdict.coverage.reporting <= 1


def test_members_of_a_group_that_nobody_called_on_still_tell_the_size_of_the_job() -> None:
    job = only([_dump({"0": "[0, 1, 2, 3]", "dp": "[0, 1]"}, ["dp"])])

    assert job.verdict.coverage.world_size == 4
