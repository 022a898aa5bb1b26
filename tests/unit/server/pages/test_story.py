"""The history of an incident: order, and captures that follow each other as one line."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from tests.web import making

from hangwatch_server import model
from hangwatch_server.pages import story


def _capture(name: str, after_s: float, **changes: object) -> model.CaptureSummary:
    made = making.summary(making.capture(name, "job1", "5"))
    at = making.NOW - timedelta(seconds=252) + timedelta(seconds=after_s)
    return dataclasses.replace(made, **{"stored_at": at, **changes})  # type: ignore[arg-type]


def _incident(**changes: object) -> model.Incident:
    return making.incident(making.verdict("job1", "gpt", model.State.HUNG), **changes)


def test_changes_evidence_and_comments_are_one_list_by_time() -> None:
    said = model.Comment(at=making.NOW, by="ada", text="drained node-b")

    told = story.of_incident(_incident(comments=(said,)), [_capture("c1", 5)])

    assert [item.what for item in told] == ["suspected", "evidence stored", "hung", "comment"]
    assert told[1].text == "stacks of rank 5"
    assert (told[-1].by, told[-1].text) == ("ada", "drained node-b")


def test_captures_in_a_row_are_one_line_with_the_newest() -> None:
    told = story.of_incident(_incident(), [_capture("c1", 20), _capture("c2", 25)])

    assert [item.what for item in told] == ["suspected", "hung", "evidence stored"]
    assert told[-1].text == "2 captures: stacks of rank 5"
    assert told[-1].capture == "c2"


def test_a_capture_of_which_nothing_came_is_no_evidence() -> None:
    told = story.of_incident(_incident(), [_capture("c1", 5, stored_at=None)])

    assert "evidence stored" not in [item.what for item in told]


def test_ranks_that_did_not_answer_are_counted() -> None:
    told = story.of_incident(_incident(), [_capture("c1", 5, ranks="5-7", missing=2)])

    assert told[1].text == "stacks of ranks 5-7; 2 ranks without"


def test_command_that_was_run_is_told_with_what_came_of_it() -> None:
    at = making.NOW
    begun = model.IncidentEvent(
        at=at, old="confirmed", new="action_running", why="drain: the incident stands"
    )
    done = dataclasses.replace(begun, new="action_done", why="exit code 0 after 0.4 s: drained n2")

    told = story.of_incident(_incident(history=(begun, done)), [])

    assert [(item.what, item.text) for item in told] == [
        ("action running", "drain: the incident stands"),
        ("action done", "exit code 0 after 0.4 s: drained n2"),
    ]
