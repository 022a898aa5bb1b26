"""Whatever happens to an incident, and however often it is planned: who is told what.

A small world keeps the rows that the database would keep; each step changes it, lets time pass,
plans, and sends what is next in each channel, as the worker would.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.support.planning import ALL, CASE, REMIND_S, RULES, SETTLE_S, START, channel, silence

from hangwatch_server.alerts import planning
from hangwatch_server.model import JOB_FAILED, IncidentState
from hangwatch_server.model.alerts import (
    Channel,
    DeliveryState,
    Silence,
    Topic,
)
from hangwatch_server.model.outbox import Case, Due, Told


@dataclass
class World:
    """One incident, one channel, and what was told."""

    channel: Channel = field(default_factory=channel)
    case: Case = CASE
    now: datetime = START
    told: list[Told] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    sent: list[tuple[Topic, int]] = field(default_factory=list)  # in the order of arrival
    snoozes: int = 0

    @property
    def is_active(self) -> bool:
        return self.case.ended_at is None

    def plan(self) -> tuple[Due, ...]:
        found = planning.due(self.case, self.channel, self.told, self.silences, RULES, self.now)
        for due in found:
            self._insert(due)
        return found

    def _insert(self, due: Due) -> None:
        state = DeliveryState.SILENCED if due.held else DeliveryState.PENDING
        if due.wakes:
            self.told = [
                replace(one, state=state) if one.id == due.wakes else one for one in self.told
            ]
            return
        assert not any((one.topic, one.number) == (due.topic, due.number) for one in self.told), (
            "planned twice"
        )
        self.told.append(
            Told(
                id=f"{due.topic}{due.number}",
                channel=self.channel.id,
                about="incident:i1",
                topic=due.topic,
                number=due.number,
                state=state,
                created_at=self.now,
                sent_at=None,
            )
        )

    def send(self, *, is_heard: bool) -> None:
        """The first pending one arrives, or is given up with all that follow it."""
        pending = [one for one in self.told if one.state is DeliveryState.PENDING]
        for one in pending:
            self.told.remove(one)
            is_orphan = any(
                other.topic is Topic.OPENED and other.state is DeliveryState.FAILED
                for other in self.told
            )
            is_sent = is_heard and not is_orphan
            state = DeliveryState.SENT if is_sent else DeliveryState.FAILED
            self.told.append(replace(one, state=state, sent_at=self.now if is_sent else None))
            if is_sent:
                self.sent.append((one.topic, one.number))

    def acknowledge(self) -> None:
        if self.is_active and self.case.acknowledged_at is None:
            self.case = replace(self.case, acknowledged_at=self.now)

    def snooze(self, seconds: float) -> None:
        if self.is_active:
            self.snoozes += 1
            self.case = replace(self.case, snoozed_until=self.now + timedelta(seconds=seconds))

    def end(self, state: IncidentState, reason: str) -> None:
        if self.is_active:
            self.case = replace(self.case, state=state, ended_at=self.now, end_reason=reason)

    def reopen(self) -> None:
        """As the keeper does: within a minute, hidden until it is confirmed again."""
        ended = self.case.ended_at
        if (
            self.case.state is IncidentState.RESOLVED
            and ended is not None
            and (self.now - ended).total_seconds() <= 60
        ):
            self.case = replace(self.case, state=IncidentState.OPEN, ended_at=None, end_reason="")

    def confirm(self) -> None:
        if self.case.state is IncidentState.OPEN:
            self.case = replace(self.case, state=IncidentState.CONFIRMED)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([1.0, 5.0, 12.0, 59.0, 66.0, 301.0, 4000.0])),
        st.tuples(st.just("acknowledge"), st.none()),
        st.tuples(st.just("snooze"), st.sampled_from([5.0, 100.0, 3600.0])),
        st.tuples(st.just("silence"), st.sampled_from([5.0, 100.0, 3600.0])),
        st.tuples(st.just("resolve"), st.none()),
        st.tuples(st.just("fail"), st.none()),
        st.tuples(st.just("reopen"), st.none()),
        st.tuples(st.just("confirm"), st.none()),
        st.tuples(st.just("send"), st.booleans()),
    ),
    max_size=25,
)
CHANNELS = st.builds(
    channel,
    after_s=st.sampled_from([0.0, 0.0, 120.0]),
    remind_s=st.sampled_from([0.0, REMIND_S]),
    topics=st.sampled_from([ALL, (Topic.OPENED, Topic.RESOLVED), ALL[1:]]),
)


def act(world: World, step: str, value: object) -> None:
    match step:
        case "wait":
            world.now += timedelta(seconds=float(value))  # type: ignore[arg-type]
        case "acknowledge":
            world.acknowledge()
        case "snooze":
            world.snooze(float(value))  # type: ignore[arg-type]
        case "silence":
            world.silences.append(silence(world.now, float(value)))  # type: ignore[arg-type]
        case "resolve":
            world.end(IncidentState.RESOLVED, "progress")
        case "fail":
            world.end(IncidentState.ENDED, JOB_FAILED)
        case "reopen":
            world.reopen()
        case "confirm":
            world.confirm()
        case "send":
            world.send(is_heard=bool(value))


def played(wanted: Channel, steps: list[tuple[str, object]]) -> World:
    """Every step planned twice: the second time asks for nothing."""
    world = World(channel=wanted)
    for step, value in steps:
        act(world, step, value)
        world.plan()
        assert world.plan() == ()
    return world


@given(CHANNELS, STEPS)
def test_no_message_is_planned_twice_and_planning_again_asks_for_nothing(
    wanted: Channel, steps: list[tuple[str, object]]
) -> None:
    world = played(wanted, steps)

    assert len(set(world.sent)) == len(world.sent)


@given(CHANNELS, STEPS)
def test_nothing_but_what_began_it_comes_first(
    wanted: Channel, steps: list[tuple[str, object]]
) -> None:
    sent = [topic for topic, _ in played(wanted, steps).sent]

    if sent and Topic.OPENED in wanted.topics:
        assert sent[0] is Topic.OPENED
    if Topic.RESOLVED in sent:
        assert Topic.REMINDER not in sent[sent.index(Topic.RESOLVED) :]


@given(CHANNELS, STEPS)
def test_no_alarm_is_raised_while_a_silence_or_a_snooze_is_on(
    wanted: Channel, steps: list[tuple[str, object]]
) -> None:
    world = World(channel=wanted)
    for step, value in steps:
        act(world, step, value)
        held = planning.held_back(world.case, world.silences, world.now)
        for due in world.plan():
            if held and due.topic in (Topic.OPENED, Topic.REMINDER):
                assert due.held == held
                assert due.topic is Topic.OPENED


@given(CHANNELS, STEPS)
def test_only_what_stood_for_long_enough_is_told(
    wanted: Channel, steps: list[tuple[str, object]]
) -> None:
    world = World(channel=wanted)
    for step, value in steps:
        act(world, step, value)
        if any(due.topic is Topic.OPENED and not due.held for due in world.plan()):
            stood_s = ((world.case.ended_at or world.now) - START).total_seconds()
            has_failed = world.case.end_reason == JOB_FAILED and not wanted.after_s
            assert has_failed or stood_s >= max(SETTLE_S, wanted.after_s)
            assert not (wanted.after_s and world.case.acknowledged_at)


@given(STEPS)
def test_reminders_come_no_faster_than_asked_and_stop_with_an_acknowledgement(
    steps: list[tuple[str, object]],
) -> None:
    world = World()
    for step, value in steps:
        act(world, step, value)
        reminded = [due for due in world.plan() if due.topic is Topic.REMINDER]
        assert not (reminded and world.case.acknowledged_at)
        assert not (reminded and not world.is_active)
        world.send(is_heard=True)
    count = sum(topic is Topic.REMINDER for topic, _ in world.sent)
    elapsed_s = (world.now - START).total_seconds()

    assert count <= elapsed_s // REMIND_S + world.snoozes


@given(STEPS)
def test_in_the_end_everybody_knows(steps: list[tuple[str, object]]) -> None:
    """Once receivers are heard and all is over: that it opened and that it ended, or nothing."""
    world = played(channel(), [step for step in steps if step != ("send", False)])
    stood = [one for one in world.told if one.topic is Topic.OPENED]
    world.end(IncidentState.RESOLVED, "progress")
    world.now += timedelta(days=1)
    world.plan()
    world.send(is_heard=True)
    topics = [topic for topic, _ in world.sent]

    assert planning.is_closed(world.case, world.now)
    assert topics.count(Topic.OPENED) == topics.count(Topic.RESOLVED)
    if stood and stood[0].state is not DeliveryState.SILENCED:
        assert Topic.RESOLVED in topics
