"""A short form of bench/soak.py: healthy jobs with everything that jobs do raise no alert."""

from __future__ import annotations

import pytest
from tests.soak.looks import Soak


@pytest.mark.parametrize(("step_s", "hours"), [(0.3, 0.5), (3.0, 0.5), (60.0, 0.5)])
def test_healthy_job_raises_no_alert(step_s: float, hours: float) -> None:
    tally = Soak(step_s, hours, seed=5).run()

    assert tally.alerts == []
    assert tally.looks > 300
    assert sum(tally.paused.values()) > 3
