"""Commands to copy: right for the incident, and safe to paste whatever a job is called."""

from __future__ import annotations

import dataclasses
import shlex

from tests.web import making, moments, scenes

from hangwatch_server import model
from hangwatch_server.pages import commands
from hangwatch_server.pages.login_form import is_local


def test_a_hostile_node_name_stays_one_argument() -> None:
    node = "node; rm -rf /"
    verdict = making.verdict(
        "job1",
        "gpt",
        model.State.HUNG,
        summary="it's stuck",
        culprit_ranks="5",
        action=model.Action(advice="restart_excluding", exclude_nodes=(node,)),
    )

    texts = [
        command.text for command in commands.of_incident(making.incident(verdict), "http://h/")
    ]

    cordon = next(text for text in texts if text.startswith("kubectl"))
    drain = next(text for text in texts if text.startswith("scontrol"))
    assert shlex.split(cordon) == ["kubectl", "cordon", node]
    assert len(shlex.split(drain)) == 5


def test_a_node_is_excluded_only_on_evidence_against_it() -> None:
    verdict = making.verdict("job1", "gpt", model.State.HUNG, culprit_ranks="5")

    texts = [
        command.text for command in commands.of_incident(making.incident(verdict), "http://h/")
    ]

    assert not any("scontrol" in text or "kubectl" in text for text in texts)


def test_a_child_that_sleeps_in_the_kernel_is_the_one_to_look_at() -> None:
    incident = next(row for row in scenes.everything().incidents if row.id == "inc-hung")

    found = commands.of_incident(incident, "http://h/", moments.of_hung())

    looked = next(command for command in found if command.text == "sudo cat /proc/831/stack")
    assert looked.why == "process 831 is in uninterruptible sleep"


def test_a_stopped_rank_is_let_go_on() -> None:
    stopped = model.Culprit(
        rank=1, node="node-a", pid=801, gpu=None, condition=model.Condition.STOPPED, where=""
    )
    verdict = making.verdict(
        "job1", "gpt", model.State.HUNG, culprits=(stopped,), culprit_ranks="1"
    )

    found = commands.of_incident(making.incident(verdict), "http://h/")

    assert "kill -CONT 801" in [command.text for command in found]


def test_a_login_leads_only_to_pages_of_this_server() -> None:
    assert is_local("/jobs/1?ranks=5")
    assert not is_local("//elsewhere.example")
    assert not is_local("/\\elsewhere.example")
    assert not is_local("https://elsewhere.example")


def test_nothing_is_offered_on_the_pids_of_a_hang_that_is_over() -> None:
    stopped = scenes.everything().incidents[0]
    ended = dataclasses.replace(stopped, state=model.IncidentState.ENDED)

    def texts(incident: model.Incident) -> str:
        return " ".join(one.text for one in commands.of_incident(incident, "http://h/"))

    assert "--pid 805" in texts(stopped)
    assert "--pid" not in texts(ended)
    assert "hangwatch stacks" not in texts(ended)
    assert "scontrol" in texts(ended)
