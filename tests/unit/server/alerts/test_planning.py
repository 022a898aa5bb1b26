"""Which messages about an incident must exist now: one case each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.support.planning import CASE, RULES, START, channel, silence

from hangwatch_server.alerts import planning
from hangwatch_server.model import JOB_FAILED, IncidentState
from hangwatch_server.model.alerts import (
    ChannelKind,
    DeliveryState,
    Matcher,
    MatchField,
    Silence,
    Topic,
)
from hangwatch_server.model.outbox import Case, Told

LATER = START + timedelta(minutes=10)


def told(
    topic: Topic = Topic.OPENED,
    state: DeliveryState = DeliveryState.SENT,
    at: datetime = START + timedelta(seconds=12),
    number: int = 0,
) -> Told:
    return Told(
        id=f"msg_{topic}{number}",
        channel="c1",
        about="incident:i1",
        topic=topic,
        number=number,
        state=state,
        created_at=at,
        sent_at=at if state is DeliveryState.SENT else None,
    )


def topics(
    case: Case = CASE,
    *before: Told,
    now: datetime = LATER,
    silences: tuple[Silence, ...] = (),
    **changes: object,
) -> list[str]:
    found = planning.due(case, channel(**changes), before, silences, RULES, now)
    return [f"{due.topic}{due.number or ''}{' held' if due.held else ''}" for due in found]


def ended(state: IncidentState, reason: str, after_s: float) -> Case:
    at = START + timedelta(seconds=after_s)
    return replace(CASE, state=state, end_reason=reason, ended_at=at)


def test_opened_is_due_ten_seconds_after_the_confirmation() -> None:
    assert topics(now=START + timedelta(seconds=9.9)) == []
    assert topics(now=START + timedelta(seconds=10)) == ["opened"]


def test_a_stall_that_ended_before_it_settled_is_told_to_nobody_and_says_why() -> None:
    assert topics(ended(IncidentState.RESOLVED, "progress", 9)) == ["opened held"]
    restarted = ended(IncidentState.ENDED, "restarted as attempt 2", 9)
    (due,) = planning.due(restarted, channel(), (), (), RULES, LATER)

    assert due.held == (
        "over 9.0 s after its confirmation (restarted as attempt 2); "
        "this channel is told after 10 s"
    )
    assert topics(restarted, told(state=DeliveryState.SILENCED)) == []


def test_an_escalation_that_somebody_was_faster_than_is_no_message_of_nobody() -> None:
    answered = replace(
        ended(IncidentState.RESOLVED, "progress", 60),
        acknowledged_at=START + timedelta(seconds=30),
    )

    assert topics(answered, after_s=600.0) == []


def test_a_stall_that_comes_back_is_told_though_its_first_end_was_early() -> None:
    early = told(state=DeliveryState.SILENCED)

    assert topics(CASE, early, now=START + timedelta(seconds=9)) == []
    assert topics(CASE, early, now=START + timedelta(seconds=11)) == ["opened"]


def test_what_stands_is_said_again_before_alertmanager_takes_it_for_over() -> None:
    kind = {"kind": ChannelKind.ALERTMANAGER, "topics": (Topic.OPENED, Topic.RESOLVED)}
    looked_after = replace(CASE, acknowledged_at=LATER)
    soon, late = START + timedelta(hours=11), START + timedelta(hours=13)
    twice = told(Topic.REMINDER, at=late, number=1)

    assert topics(looked_after, told(), now=soon, **kind) == []
    assert topics(looked_after, told(), now=late, **kind) == ["reminder1"]
    assert topics(looked_after, told(), twice, now=late + timedelta(hours=1), **kind) == []
    assert topics(looked_after, told(), now=late, topics=(Topic.OPENED,)) == []


def test_a_job_that_failed_is_told_however_soon() -> None:
    failed = ended(IncidentState.ENDED, JOB_FAILED, 0.1)

    assert topics(failed, now=START + timedelta(seconds=1)) == ["opened", "resolved"]


def test_a_channel_made_later_is_told_of_what_stands_and_not_of_what_is_over() -> None:
    new = {"created_at": START + timedelta(minutes=5)}

    assert topics(**new) == ["opened"]
    assert topics(ended(IncidentState.RESOLVED, "progress", 100), **new) == []


def test_matchers_choose_the_incidents_of_a_channel() -> None:
    for field, pattern, is_meant in [
        (MatchField.JOB, "gpt-*", True),
        (MatchField.JOB, "GPT-*", False),
        (MatchField.JOB, "b3f1", True),
        (MatchField.NODE, "node-?", True),
        (MatchField.KIND, "mismatch", False),
        (MatchField.CONDITION, "in_data*", True),
    ]:
        matchers = (Matcher(field=field, pattern=pattern),)
        assert topics(matchers=matchers) == (["opened"] if is_meant else []), pattern


def test_a_channel_that_was_told_is_told_the_end_though_the_culprit_is_another_now() -> None:
    matchers = (Matcher(field=MatchField.NODE, pattern="node-z"),)
    over = ended(IncidentState.RESOLVED, "progress", 60)

    assert topics(over, told(), matchers=matchers) == ["resolved"]


def test_an_escalation_waits_and_is_spared_by_an_acknowledgement() -> None:
    answered = replace(CASE, acknowledged_at=START + timedelta(seconds=30))

    assert topics(after_s=900.0) == []
    assert topics(after_s=900.0, now=START + timedelta(minutes=15)) == ["opened"]
    assert topics(answered, after_s=900.0, now=START + timedelta(minutes=15)) == []


def test_resolved_waits_until_the_stall_cannot_come_back() -> None:
    over = ended(IncidentState.RESOLVED, "progress", 100)

    assert topics(over, told(), now=START + timedelta(seconds=160)) == []
    assert topics(over, told(), now=START + timedelta(seconds=166)) == ["resolved"]


def test_an_end_that_cannot_come_back_is_told_at_once() -> None:
    over = ended(IncidentState.ENDED, "job finished", 100)

    assert topics(over, told(), now=START + timedelta(seconds=101)) == ["resolved"]


def test_what_was_given_up_has_no_sequel() -> None:
    over = replace(ended(IncidentState.ENDED, "job finished", 100), acknowledged_at=START)

    assert topics(over, told(state=DeliveryState.FAILED)) == []


def test_a_snooze_holds_back_and_its_end_is_told_as_a_reminder() -> None:
    snoozed = replace(CASE, snoozed_until=START + timedelta(minutes=30))

    assert topics(snoozed) == ["opened held"]
    assert topics(snoozed, told(), now=START + timedelta(minutes=29)) == []
    assert topics(snoozed, told(), now=START + timedelta(minutes=31), remind_s=0.0) == ["reminder1"]


def test_what_a_silence_held_back_goes_out_when_it_ends_and_the_hang_stands() -> None:
    window = (silence(START, 3600),)
    held = told(state=DeliveryState.SILENCED)
    over = ended(IncidentState.RESOLVED, "progress", 1800)

    assert topics(silences=window) == ["opened held"]
    assert topics(CASE, held, silences=window) == []
    assert topics(CASE, held, now=START + timedelta(seconds=3600), silences=window) == ["opened"]
    assert topics(over, held, now=START + timedelta(seconds=3600), silences=window) == []


def test_a_silence_does_not_hide_the_end_of_what_was_told() -> None:
    over = ended(IncidentState.ENDED, "job finished", 300)

    assert topics(over, told(), silences=(silence(START, 3600),)) == ["resolved"]


def test_no_reminder_follows_one_that_has_not_arrived() -> None:
    waiting = told(Topic.REMINDER, DeliveryState.PENDING, number=1)

    assert topics(CASE, told(), waiting, now=START + timedelta(days=1)) == []


def test_the_reason_of_a_silence_names_who_why_and_until_when() -> None:
    window = replace(silence(START, 3600), comment="moving racks")

    reason = planning.held_back(CASE, (window,), LATER)

    assert reason == "silenced by ada until 2026-11-20 19:00 UTC: moving racks"
    assert planning.held_back(CASE, (window,), datetime(2026, 11, 21, tzinfo=UTC)) == ""
