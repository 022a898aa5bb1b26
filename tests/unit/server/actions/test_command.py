"""The words of an action's command, and the names it is told by."""

from __future__ import annotations

import pytest
from tests.support import verdicts as make

from hangwatch_agent import settings
from hangwatch_server.actions import command, document
from hangwatch_server.app import create_app
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import Incident, IncidentState
from hangwatch_server.settings import ServerSettings


def test_command_is_split_as_a_shell_would_and_run_by_none() -> None:
    assert command.words("/bin/sh -c 'echo $HOME' \"a b\"") == (
        "/bin/sh",
        "-c",
        "echo $HOME",
        "a b",
    )
    assert command.words("") == ()


@pytest.mark.parametrize("text", ["/nowhere/drain --all", "'unfinished"])
def test_command_that_cannot_run_is_refused_when_the_server_starts(text: str) -> None:
    with pytest.raises(HangwatchError, match="--action-command"):
        create_app(ServerSettings(action_command=text))


def test_hangwatch_called_by_the_command_takes_what_it_is_told_for_no_setting() -> None:
    keys = {name.removeprefix(settings.PREFIX).lower() for name in document.VARIABLES}

    assert keys >= settings.TOLD_KEYS
    assert keys >= settings.TOLD_KEYS


def test_every_variable_gets_a_value_that_an_environment_takes() -> None:
    found = document.environment(an_incident("a\0b"), "")

    assert set(found) == set(document.VARIABLES)
    assert found["HANGWATCH_JOB"] == "a\ufffdb"


def an_incident(job_name: str) -> Incident:
    verdict = make.verdict()
    return Incident(
        id="i_1",
        job=verdict.job,
        job_name=job_name,
        attempt=1,
        state=IncidentState.CONFIRMED,
        kind=verdict.kind,
        summary=verdict.summary,
        culprit_ranks=verdict.culprit_ranks,
        culprit_nodes=("node-b",),
        opened_at=make.SINCE,
        confirmed_at=make.SINCE,
        ended_at=None,
        end_reason="",
        acknowledged_by="",
        acknowledged_at=None,
        snoozed_until=None,
        verdict=verdict,
    )
