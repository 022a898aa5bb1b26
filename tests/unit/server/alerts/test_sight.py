"""What makes the monitor blind, and when it sees again."""

from __future__ import annotations

from dataclasses import replace

from tests.support.planning import START

from hangwatch_server.alerts import sight
from hangwatch_server.alerts.sight import Facts
from hangwatch_server.model import State
from hangwatch_server.model.alerts import BlindCause, BlindSpell
from hangwatch_server.model.outbox import SeenJob

JOB = SeenJob(id="j1", name="gpt-7b", state=State.HEALTHY, reporting=8, world_size=8)
ALONE = replace(JOB, reporting=2, state=State.UNKNOWN)
FINE = Facts(server="s1", living=frozenset({"s1", "s2"}), agents=3, jobs=(JOB,), failing=())


def found(facts: Facts) -> list[tuple[BlindCause, str]]:
    return [(symptom.cause, symptom.text) for symptom in sight.symptoms(facts, 0.5)]


def spell(cause: BlindCause, subject: str = "") -> BlindSpell:
    return BlindSpell(
        id="b1", cause=cause, subject=subject, job_name="", text="", began_at=START, ended_at=None
    )


def is_over(cause: BlindCause, facts: Facts, subject: str = "") -> bool:
    return sight.is_over(spell(cause, subject), facts, sight.symptoms(facts, 0.5))


def test_all_is_well_while_agents_are_heard_and_ranks_report() -> None:
    assert found(FINE) == []
    assert found(replace(FINE, jobs=(replace(JOB, reporting=4),))) == []


def test_without_agents_and_jobs_there_is_nothing_to_see() -> None:
    assert found(replace(FINE, agents=0, jobs=())) == []


def test_no_agent_while_jobs_ran_is_said_once_for_all_jobs() -> None:
    jobs = tuple(replace(ALONE, name=f"job-{number}") for number in range(5))

    assert found(replace(FINE, agents=0, jobs=jobs)) == [
        (
            BlindCause.NO_AGENT,
            "no agent is heard, and job-0, job-1, job-2 and 2 more ran when one was",
        )
    ]


def test_a_job_of_which_too_few_ranks_report_is_out_of_sight() -> None:
    assert found(replace(FINE, jobs=(ALONE,))) == [
        (BlindCause.COVERAGE, "only 2 of 8 ranks of gpt-7b report")
    ]


def test_a_job_that_starts_is_given_its_time() -> None:
    assert found(replace(FINE, jobs=(replace(ALONE, state=State.STARTING),))) == []


def test_a_task_of_the_server_that_fails_is_a_symptom() -> None:
    ((cause, text),) = found(replace(FINE, failing=("watch",)))

    assert cause is BlindCause.SERVER
    assert text == "its own tasks fail again and again on s1: watch"


def test_a_server_is_named_by_its_machine() -> None:
    ((_, text),) = found(replace(FINE, server="gpu-head:41:9f", failing=("watch",)))

    assert text == "its own tasks fail again and again on gpu-head: watch"


def test_a_job_whose_nodes_are_gone_is_waited_for_no_longer_than_it_is_remembered() -> None:
    gone = replace(FINE, jobs=())

    assert is_over(BlindCause.COVERAGE, gone, "j1")
    assert "nothing was heard of it for 30 min" in sight.why_over(
        spell(BlindCause.COVERAGE, "j1"), gone, "30 min 00 s"
    )
    assert sight.why_over(spell(BlindCause.COVERAGE, "j1"), FINE, "30 min 00 s") == ""


def test_no_agent_at_all_is_no_blindness_once_no_job_is_waited_for() -> None:
    idle = replace(FINE, agents=0, jobs=())

    assert not is_over(BlindCause.NO_AGENT, replace(idle, jobs=(ALONE,)))
    assert is_over(BlindCause.NO_AGENT, idle)
    assert sight.why_over(spell(BlindCause.NO_AGENT), idle, "30 min 00 s") != ""


def test_a_symptom_keeps_its_beginning_only_without_a_break() -> None:
    first = sight.symptoms(replace(FINE, jobs=(ALONE,)), 0.5)
    since = sight.still_since({}, first, 10.0)
    key = (BlindCause.COVERAGE, "j1")

    assert sight.still_since(since, first, 30.0) == {key: 10.0}
    assert sight.still_since({}, first, 40.0) == {key: 40.0}
    assert sight.still_since(since, (), 30.0) == {}


def test_only_a_heard_agent_ends_the_silence_of_all() -> None:
    assert not is_over(BlindCause.NO_AGENT, replace(FINE, agents=0))
    assert is_over(BlindCause.NO_AGENT, FINE)


def test_nothing_is_known_to_be_better_where_nothing_is_heard() -> None:
    assert not is_over(BlindCause.COVERAGE, replace(FINE, agents=0, jobs=()), "j1")
    assert is_over(BlindCause.COVERAGE, FINE, "j1")
    assert not is_over(BlindCause.COVERAGE, replace(FINE, jobs=(ALONE,)), "j1")


def test_a_server_speaks_of_its_own_tasks_only() -> None:
    assert is_over(BlindCause.SERVER, FINE, "s1")
    assert not is_over(BlindCause.SERVER, FINE, "s2")


def test_what_a_server_said_of_itself_ends_with_it() -> None:
    assert is_over(BlindCause.SERVER, FINE, "s3")
