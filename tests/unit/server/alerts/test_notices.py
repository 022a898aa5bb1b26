"""Which notices must exist now: of stragglers, and of the monitor's own blindness."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support import planning
from tests.support import verdicts as make

from hangwatch_server.alerts import notices
from hangwatch_server.model import State
from hangwatch_server.model.alerts import (
    BlindCause,
    BlindSpell,
    ChannelKind,
    DeliveryState,
    Topic,
)
from hangwatch_server.model.outbox import Told


@pytest.mark.parametrize("topic", [Topic.SLOW, Topic.BLIND])
def test_a_notice_is_said_again_before_alertmanager_takes_it_for_over(topic: Topic) -> None:
    fading = planning.channel(kind=ChannelKind.ALERTMANAGER, topics=(topic,))
    told = Told(
        id="msg_1",
        channel=fading.id,
        about="monitor:b1",
        topic=topic,
        number=0,
        state=DeliveryState.SENT,
        created_at=planning.START,
        sent_at=planning.START,
    )
    spell = BlindSpell(
        id="b1",
        cause=BlindCause.SERVER,
        subject="s1",
        job_name="",
        text="",
        began_at=planning.START,
        ended_at=None,
    )
    slow = make.job(state=State.SLOW)

    def due(hours: float) -> list[int]:
        now = planning.START + timedelta(hours=hours)
        found = (
            notices.of_slow_job(slow, fading, (told,), (), now)
            if topic is Topic.SLOW
            else notices.of_spell(spell, fading, (told,), (), now)
        )
        return [one.number for one in found]

    assert due(11) == []
    assert due(13) == [1]
