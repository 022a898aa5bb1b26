"""The sentence on top: what it says for no job, good jobs, and each kind of trouble."""

from __future__ import annotations

import pytest
from tests.web import making

from hangwatch_server import model
from hangwatch_server.pages import headline, words


def _job(name: str, state: model.State) -> model.Job:
    return making.job(making.verdict(name, name, state))


def test_without_jobs_it_says_so() -> None:
    said = headline.of_jobs([])

    assert said.lead == "No job yet."
    assert said.title == "No job yet · Hangwatch"


def test_a_stuck_job_is_counted_against_those_that_live() -> None:
    said = headline.of_jobs(
        [
            _job("a", model.State.HUNG),
            _job("b", model.State.HEALTHY),
            _job("c", model.State.FINISHED),
        ]
    )

    assert said.lead == "1 of 2 jobs is stuck."
    assert said.title == "▲ 1 of 2 jobs is stuck · Hangwatch"
    assert said.job is not None
    assert said.job.name == "a"


def test_an_unknown_job_is_never_called_fine() -> None:
    said = headline.of_jobs([_job("a", model.State.UNKNOWN), _job("b", model.State.HEALTHY)])

    assert said.lead == "1 of 2 jobs is out of sight."
    assert said.state is model.State.UNKNOWN


def test_a_job_that_failed_is_not_called_stuck() -> None:
    said = headline.of_jobs([_job("a", model.State.FAILED), _job("b", model.State.HEALTHY)])

    assert said.lead == "1 of 2 jobs failed."


def test_jobs_of_the_past_are_not_called_a_new_start() -> None:
    assert headline.of_jobs([], has_earlier=True).lead == "No job is running."


def test_a_verdict_in_one_line_says_what_happened_and_what_the_culprit_does() -> None:
    culprit = model.Culprit(
        rank=5,
        node="node-b",
        pid=805,
        gpu=None,
        condition=model.Condition.IN_DATALOADER,
        where="train.py:88 in __getitem__",
    )
    said = making.verdict(
        "a",
        "a",
        model.State.HUNG,
        summary="Rank 5 never entered all_reduce #9 of dp-1; 7 ranks have waited 12 s.",
        culprits=(culprit,),
    )

    assert headline.line(said) == (
        "Rank 5 never entered all_reduce #9 of dp-1",
        "in its dataloader",
    )


def test_all_is_well_in_one_sentence() -> None:
    jobs = [_job("a", model.State.HEALTHY), _job("b", model.State.HEALTHY)]

    assert headline.of_jobs(jobs).lead == "All 2 jobs are making progress."


@pytest.mark.parametrize(
    ("states", "lead"),
    [
        ([model.State.STARTING], "The one job is starting."),
        ([model.State.EXPECTED_WAIT], "The one job waits, as expected."),
        ([model.State.SLOW], "The one job is slow."),
        ([model.State.SLOW, model.State.HEALTHY], "1 of 2 jobs is slow."),
        ([model.State.EXPECTED_WAIT, model.State.HEALTHY], "No job is stuck."),
    ],
)
def test_a_job_without_progress_is_not_said_to_make_some(
    states: list[model.State], lead: str
) -> None:
    said = headline.of_jobs([_job(str(number), state) for number, state in enumerate(states)])

    assert said.lead == lead
    assert said.title.startswith(f"{words.GLYPHS[said.state]} {lead.removesuffix('.')}")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"kind": model.Kind.MISSING_RANKS, "culprit_ranks": "5", "waiting": "0-4"},
            "rank 5 holds up 5 ranks",
        ),
        (
            {"kind": model.Kind.MISSING_RANKS, "culprit_ranks": "2-3", "waiting": "0"},
            "ranks 2-3 hold up 1 rank",
        ),
        (
            {"kind": model.Kind.MISMATCH, "op": "all_reduce", "seq": 29},
            "ranks made different calls at #29",
        ),
        (
            {"kind": model.Kind.DEADLOCK, "culprit_ranks": "0-3"},
            "4 ranks wait for each other",
        ),
        (
            {"kind": model.Kind.STALLED_COLLECTIVE, "op": "all_gather", "seq": 7},
            "all ranks entered all_gather #7, none finishes",
        ),
        (
            {
                "kind": model.Kind.STALLED_COLLECTIVE,
                "op": "all_gather",
                "seq": 7,
                "group": model.GroupRef(id="g", name="dp", ranks="0-3"),
                "waiting": "0-2",
            },
            "no rank is known to be missing from all_gather #7, none finishes",
        ),
        (
            {"kind": model.Kind.INCOMPLETE_RENDEZVOUS, "culprit_ranks": "3"},
            "rank 3 never came to the rendezvous",
        ),
    ],
)
def test_an_incident_is_named_by_who_against_whom(changes: dict[str, object], text: str) -> None:
    verdict = making.verdict("a", "a", model.State.HUNG, **changes)

    assert headline.of_verdict(verdict) == text


def test_a_failure_that_held_nobody_up_is_named_by_who_died() -> None:
    verdict = making.verdict(
        "a",
        "a",
        model.State.FAILED,
        kind=model.Kind.NONE,
        summary="Rank 3 exited with code 1; restarted as attempt 2.",
    )

    assert headline.of_verdict(verdict) == "rank 3 exited with code 1"


def test_a_rank_that_is_inside_the_call_has_not_failed_to_arrive() -> None:
    edge = model.WaitEdge(ranks="0-7", call="dp-1 all_reduce #88", missing="5")
    inside = making.verdict("a", "a", model.State.HUNG, culprit_ranks="5", edges=(edge,))
    absent = making.verdict("a", "a", model.State.HUNG, culprit_ranks="8", edges=(edge,))

    assert headline.of_culprits(inside) == "holds the others up"
    assert headline.of_culprits(absent) == "has not arrived"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"kind": model.Kind.MISSING_RANKS, "culprit_ranks": "5", "waiting": "0-4"},
            "rank 5 held up 5 ranks",
        ),
        ({"kind": model.Kind.DEADLOCK, "culprit_ranks": "0-3"}, "4 ranks waited for each other"),
        (
            {"kind": model.Kind.STALLED_COLLECTIVE, "op": "all_gather", "seq": 7},
            "all ranks entered all_gather #7, none finished",
        ),
    ],
)
def test_what_is_over_is_told_as_past(changes: dict[str, object], text: str) -> None:
    verdict = making.verdict("a", "a", model.State.HUNG, **changes)
    ended = making.incident(verdict, state=model.IncidentState.ENDED, ended_at=making.NOW)

    assert headline.of_incident(ended) == text


def test_the_call_that_ranks_wait_in_is_named_as_far_as_it_is_known() -> None:
    group = model.GroupRef(id="g", name="dp-1", ranks="0-3")
    whole = making.verdict("a", "a", model.State.HUNG, op="all_reduce", seq=9, group=group)
    bare = making.verdict("a", "a", model.State.HUNG, op="all_reduce")
    none = making.verdict("a", "a", model.State.HUNG)

    told = [headline.call(verdict) for verdict in (whole, bare, none)]
    assert told == ["all_reduce #9 of dp-1", "all_reduce", ""]
