"""What people read at 3 a.m.: one line with the culprit first, then a few lines."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.support import alerts as support
from tests.support import verdicts as make

from hangwatch_server.alerts import messages
from hangwatch_server.model import Incident, IncidentEvent
from hangwatch_server.model.alerts import BlindCause, BlindSpell, Message, Topic

BASE = "https://hangwatch.example"
NOW = support.OPENED + timedelta(minutes=20)


def of(topic: Topic, incident: Incident) -> Message:
    return messages.of_incident(topic, incident, BASE, NOW)


def test_the_title_of_a_hang_begins_with_its_culprit() -> None:
    message = of(Topic.OPENED, support.incident())

    assert message.title == (
        "Rank 5 (node-b, pid 812) never entered all_reduce #29 of group dp-1 · gpt-7b"
    )
    assert message.text.splitlines() == [
        "Job gpt-7b, attempt 1, 8 ranks.",
        support.incident().summary,
        "Waiting: ranks 0-4,6-7.",
        "• Look at the storage that rank 5 reads its samples from.",
    ]
    assert message.url == f"{BASE}/incidents/{support.incident().id}"


def test_a_reminder_says_for_how_long_it_has_stood() -> None:
    message = of(Topic.REMINDER, support.incident())

    assert message.title.startswith("Still stuck after 20 min 00 s: Rank 5 (node-b, pid 812) never")
    assert "As it was found: Rank 5" in message.text  # "7 ranks have waited 12 s" is of that moment


def test_an_acknowledgement_names_who_and_what_they_said() -> None:
    said = IncidentEvent(
        at=NOW, old="confirmed", new="acknowledged", why="draining node-b", by="ada"
    )
    message = of(Topic.ACKNOWLEDGED, replace(support.acknowledged(), history=(said,)))

    assert message.title.startswith("ada looks after it: Rank 5")
    assert message.text.endswith("ada: draining node-b")


def test_the_end_says_how_long_it_took_and_why_it_is_over() -> None:
    message = of(Topic.RESOLVED, support.resolved())

    assert message.title.startswith("Resolved after 4 min 12 s: Rank 5")
    assert "Resolved after 4 min 12 s: progress." in message.text


def test_a_name_with_line_ends_and_controls_stays_one_line() -> None:
    hostile = replace(
        support.incident(), job_name="a\nb\r\n\x1b[31mc\u2028d\u202ee", summary="x\n\ny"
    )
    message = of(Topic.OPENED, hostile)

    assert message.title == "x y · a b [31mc de"
    assert len(message.text.splitlines()) == 4


def test_a_message_is_bounded_whatever_a_job_is_called() -> None:
    message = of(Topic.OPENED, support.huge_incident())

    assert len(message.title) <= 250
    assert len(message.text) <= 2000


def test_ids_are_never_the_same() -> None:
    assert len({messages.new_id() for _ in range(100)}) == 100


def test_a_straggler_is_a_notice_about_its_job() -> None:
    job = make.job("j1", name="gpt-7b")
    slow = replace(job, verdict=replace(make.verdict("j1"), summary="Rank 3 comes last. It works."))
    message = messages.of_slow_job(slow, BASE, NOW)

    assert message.title == "Rank 3 comes last · gpt-7b is slow"
    assert message.url == f"{BASE}/jobs/j1"
    assert message.about == "slow:j1:1:5"


def test_blindness_and_sight_are_told_with_their_length() -> None:
    spell = BlindSpell(
        id="b1",
        cause=BlindCause.NO_AGENT,
        subject="",
        job_name="",
        text="no agent is heard",
        began_at=support.OPENED,
        ended_at=None,
    )
    over = replace(spell, ended_at=support.OPENED + timedelta(minutes=12))

    assert messages.of_spell(Topic.BLIND, spell, BASE, NOW).title == (
        "Hangwatch is blind: no agent is heard"
    )
    assert messages.of_spell(Topic.SIGHTED, over, BASE, NOW).title == (
        "Hangwatch sees again: it was blind for 12 min 00 s"
    )
    assert messages.of_spell(Topic.SIGHTED, over, BASE, NOW).text.startswith(
        "What it was: no agent is heard."
    )
