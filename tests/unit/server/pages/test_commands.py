"""Commands to copy: right for the incident, and safe to paste whatever a job is called."""

from __future__ import annotations

import shlex

from tests.web import making

from hangwatch_server import model
from hangwatch_server.pages import commands
from hangwatch_server.pages.login import is_local


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

    assert shlex.split(texts[-1]) == ["kubectl", "cordon", node]
    assert len(shlex.split(texts[-2])) == 5


def test_a_node_is_excluded_only_on_evidence_against_it() -> None:
    verdict = making.verdict("job1", "gpt", model.State.HUNG, culprit_ranks="5")

    texts = [
        command.text for command in commands.of_incident(making.incident(verdict), "http://h/")
    ]

    assert not any("scontrol" in text or "kubectl" in text for text in texts)


def test_a_login_leads_only_to_pages_of_this_server() -> None:
    assert is_local("/jobs/1?ranks=5")
    assert not is_local("//elsewhere.example")
    assert not is_local("/\\elsewhere.example")
    assert not is_local("https://elsewhere.example")
