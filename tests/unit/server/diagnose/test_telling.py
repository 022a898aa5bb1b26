"""The words of findings: true of what is known, and hints only where the evidence bears them."""

from __future__ import annotations

import pytest
from tests.synthetic import jobs, large
from tests.unit.server.diagnose import builders as make

from hangwatch_agent.wire import GpuFacts
from hangwatch_server import ranges
from hangwatch_server.diagnose import diagnose
from hangwatch_server.diagnose.blame import conditions
from hangwatch_server.diagnose.telling import sentences
from hangwatch_server.model import Activity, Condition, Culprit, Finding, Link, RankView
from hangwatch_server.simulate.telemetry import Shape


def waited_for(culprit: RankView) -> Finding:
    """Rank 1 is `culprit`; three others wait in all_reduce #6."""
    views = [make.rank(rank, make.at("world", 5, 6)) for rank in (0, 2, 3)]
    return diagnose(make.snapshot([*views, culprit], [make.world(*range(4))]))[0]


def test_ranks_wait_where_their_gpu_is_and_for_others_than_themselves() -> None:
    job = large.stopped(64, Shape.NCCL)

    edges = diagnose(jobs.snapshot(job))[0].edges

    assert str(min(job.truth.culprits)) in {edge.missing for edge in edges}
    waiting = [set(ranges.parse(edge.ranks)) for edge in edges]
    missing = [set(ranges.parse(edge.missing)) for edge in edges]
    assert all(own and own.isdisjoint(others) for own, others in zip(waiting, missing, strict=True))
    assert sum(map(len, waiting)) == len(set().union(*waiting))


def test_of_a_silent_rank_it_is_not_said_that_it_never_came() -> None:
    silent = make.rank(1, make.at("world", 4), node="node-b", link=Link.LOST, age_s=40.0)

    found = waited_for(silent)

    assert found.culprit_ranks == "1"
    assert "not known to have entered all_reduce #6" in found.summary
    assert "never entered" not in found.summary


@pytest.mark.parametrize(
    ("detail", "is_hinted"), [("", True), ("waits for the network", False), ("it evaluates", True)]
)
def test_a_branch_is_suspected_only_where_the_stack_explains_no_wait(
    detail: str, is_hinted: bool
) -> None:
    at_work = make.stack(Activity.USER_CODE, detail=detail)

    found = waited_for(make.rank(1, make.at("world", 5), stack=at_work))

    assert any("branch" in hint for hint in found.hints) is is_hinted


@pytest.mark.parametrize(
    ("waits_on", "hint"), [("thread", "Another thread"), ("child", "child process")]
)
def test_a_lock_is_hinted_at_by_whom_the_stack_waits_for(waits_on: str, hint: str) -> None:
    in_lock = make.stack(Activity.LOCK, waits_on=waits_on)

    found = waited_for(make.rank(1, make.at("world", 5), stack=in_lock))

    assert [text for text in found.hints if hint in text]
    assert sum("Another thread" in text for text in found.hints) == (waits_on == "thread")


def test_an_error_that_a_program_can_raise_is_not_laid_to_the_hardware() -> None:
    found = waited_for(make.rank(1, make.at("world", 5), gpu=GpuFacts(index=1, xid=(31,))))

    (told,) = (item.text for item in found.evidence if item.kind == "gpu")
    assert told == "GPU 1 of rank 1 raised Xid 31, as a faulty program can."


def test_a_rank_judged_by_its_line_only_seems_to_have_left() -> None:
    culprit = Culprit(
        rank=1,
        node="node-b",
        pid=801,
        gpu=None,
        condition=Condition.FINISHED,
        where="train.py:90 in main",
        detail=conditions.BY_LINE,
    )

    assert sentences.doing(culprit).startswith("seems to have left training: train.py:90")


def test_a_second_cause_is_in_the_headline() -> None:
    groups = [make.group("tp-0", (0, 1)), make.group("tp-1", (2, 3))]
    views = [
        make.rank(rank, make.at(gid, 5, None if rank % 2 else 6))
        for gid, members in (("tp-0", (0, 1)), ("tp-1", (2, 3)))
        for rank in members
    ]

    found = diagnose(make.snapshot(views, groups))[0]

    assert {culprit.rank for culprit in (*found.culprits, *found.besides)} == {1, 3}
    assert "Apart from that, rank 3 holds others up too." in found.summary


def culprit(rank: int, condition: Condition, where: str = "", detail: str = "") -> Culprit:
    return Culprit(
        rank=rank, node="a", pid=1, gpu=None, condition=condition, where=where, detail=detail
    )


@pytest.mark.parametrize("condition", Condition)
def test_what_several_ranks_do_agrees_in_number(condition: Condition) -> None:
    one, many = (sentences.doing(culprit(2, condition), are_many=many) for many in (False, True))

    assert one.split()[0] in {"is", "has", "was", "holds", "waits", "does"}
    assert many.split()[0] in {"are", "have", "were", "hold", "wait", "do"}
    assert " its " not in many


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (culprit(2, Condition.UNKNOWN), "are somewhere that cannot be seen"),
        (culprit(2, Condition.UNKNOWN, "a.py:1 in f"), "are at a.py:1 in f"),
        (culprit(2, Condition.KILLED, detail="was killed by SIGKILL"), "were killed by SIGKILL"),
        (culprit(2, Condition.EXITED, detail="exited with code 1"), "exited with code 1"),
        (
            culprit(2, Condition.IN_DATALOADER, detail="it waits for batch 3"),
            "are in their dataloaders (each: it waits for batch 3)",
        ),
    ],
)
def test_one_sentence_for_several_ranks_is_in_the_plural(said: Culprit, expected: str) -> None:
    assert sentences.doing(said, are_many=True) == expected


def test_ranks_of_one_doing_are_named_together() -> None:
    waiting = [make.rank(rank, make.at("world", 5, 6)) for rank in (0, 1)]
    missing = [make.rank(rank, make.at("world", 5)) for rank in (2, 3)]

    found = diagnose(make.snapshot([*waiting, *missing], [make.world(*range(4))]))[0]

    assert "Ranks 2-3 are somewhere that cannot be seen." in found.summary
    assert "Rank 2-3" not in found.summary
