"""Waits for ranks that have not come: init_process_group, new_group and rendezvous have their own
limits.
"""

from __future__ import annotations

from collections.abc import Collection

from hangwatch_server.detect.frozen import Motion
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import RankView, State


def judge(
    absent: Collection[RankView],
    motions: Collection[Motion],
    stalled_s: float,
    world_size: int,
    s: DetectSettings,
) -> tuple[State, str]:
    """The state of an incomplete rendezvous; `motions` are those of the absent ranks that exist.

    How long nobody was seen counts from when we began to look: a server that has just started has
    not heard all agents yet, however old the wait is.
    """
    existing = [view.rank for view in absent if view.beat is not None or view.node]
    looked_s = min((view.age_s for view in absent if view.beat is None), default=stalled_s)
    nobody_s = s.rendezvous_absent_s + s.rendezvous_per_rank_s * world_size
    if Motion.FROZEN in motions and stalled_s >= s.rendezvous_frozen_s:
        return State.HUNG, "an absent rank's process exists and is frozen elsewhere"
    if not existing and min(stalled_s, looked_s) >= nobody_s:
        return State.HUNG, f"no process of the absent ranks was seen in {nobody_s:.0f} s"
    if existing and stalled_s >= s.rendezvous_working_s:
        return State.HUNG, f"the absent ranks did not come in {s.rendezvous_working_s:.0f} s"
    if existing and stalled_s >= nobody_s:
        return State.SLOW, "the absent ranks' processes still work elsewhere"
    return State.SUSPECTED, "a rendezvous waits for ranks that have not come"
