"""Which children's work is their rank's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.server.detect.builders import beat, facts, view

from hangwatch_agent import wire
from hangwatch_server.detect import DetectSettings, children
from hangwatch_server.model import Activity, RankView, StackFacts

STACK = StackFacts(
    pid=102,
    age_s=1.0,
    where="train.py:88 in step",
    leaf="train.py:88 in step",
    activity=Activity.USER_CODE,
)


def rank(*family: wire.ChildFacts, wchan: str = "", **stack: object) -> RankView:
    found = view(beat(2, process=facts(wchan=wchan, children=family)))
    return replace(found, stack=replace(STACK, **stack))


def child(role: str = "other", share: float = 0.5) -> wire.ChildFacts:
    return wire.ChildFacts(pid=9, name="python", role=role, state="S", cpu_share=share)


def are_serving(found: RankView) -> bool:
    assert found.beat is not None
    return children.serve(found, children.moving(found.beat.process, DetectSettings()))


@pytest.mark.parametrize("on", ["child", "thread"])
def test_any_child_serves_a_rank_that_waits_for_a_child_or_for_a_thread(on: str) -> None:
    assert are_serving(rank(child(), waits_on=on))
    assert not are_serving(rank(child()))


@pytest.mark.parametrize("wchan", ["do_wait", "anon_pipe_read", "pipe_read"])
def test_any_child_serves_a_rank_that_waits_for_its_end_or_its_words(wchan: str) -> None:
    assert are_serving(rank(child(), wchan=wchan))
    assert not are_serving(rank(child(), wchan="futex_do_wait"))


def test_loader_worker_serves_its_rank_wherever_that_waits() -> None:
    assert are_serving(rank(child("loader")))
    assert not are_serving(rank(child("loader", share=0.01)))


def test_interpreters_own_helper_serves_nobody() -> None:
    assert not are_serving(rank(child("helper"), wchan="do_wait"))
