"""States that need no stall: starting, healthy, finished, failed, and unknown for want of data."""

from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server import process_states, ranges
from hangwatch_server.detect import progress
from hangwatch_server.detect.memory import Memory
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Limits, Link, RankView, Snapshot, State

Verdict = tuple[State, str]


def ended(snapshot: Snapshot) -> Verdict | None:
    """Finished, failed or unknown once every rank of the job is gone; None while one is alive."""
    if any(map(_is_watched, snapshot.ranks.values())):
        return None
    beats = {rank: view.beat for rank, view in snapshot.ranks.items() if view.beat is not None}
    if not beats:
        return None
    if len(beats) < snapshot.world_size:
        return _partly_ended(snapshot, beats)
    bad = [rank for rank, beat in beats.items() if _has_failed(beat)]
    if bad:
        return State.FAILED, f"{ranges.named(bad)} ended badly: {_how(beats[min(bad)])}"
    unclear = [rank for rank, beat in beats.items() if not _has_ended_well(beat)]
    if unclear:
        return State.UNKNOWN, f"all ranks are gone; of {ranges.named(unclear)} nobody knows why"
    return State.FINISHED, "all ranks ended without an error"


def is_over(snapshot: Snapshot) -> bool:
    """Whether every rank was reported and is gone."""
    beats = (view.beat for view in snapshot.ranks.values())
    is_gone = (beat is not None and process_states.has_ended(beat.process) for beat in beats)
    return bool(snapshot.ranks) and all(is_gone)


def _partly_ended(snapshot: Snapshot, beats: dict[int, wire.RankBeat]) -> Verdict:
    """Ranks that are not reported may still run: only a failure is certain."""
    bad = [rank for rank, beat in beats.items() if _has_failed(beat)]
    if bad:
        return State.FAILED, f"{ranges.named(bad)} ended badly: {_how(beats[min(bad)])}"
    unseen = snapshot.ranks.keys() - beats.keys()
    count = snapshot.world_size - len(beats)
    are_known = count == len(unseen)
    silent = ranges.agreeing(unseen, "is", "are") if are_known else f"{count} ranks are"
    return State.UNKNOWN, f"all reported ranks are gone; {silent} not reported"


def _has_failed(beat: wire.RankBeat) -> bool:
    process = beat.process
    return bool(process.exit_code) or bool(process.exit_signal)


def _has_ended_well(beat: wire.RankBeat) -> bool:
    return beat.process.exit_code == 0 or beat.is_destroyed


def _how(beat: wire.RankBeat) -> str:
    process = beat.process
    if process.exit_reason:
        return process.exit_reason
    if process.exit_signal:
        return f"signal {process.exit_signal}"
    return f"exit code {process.exit_code}"


def _main_threads_run(beats: list[wire.RankBeat], s: DetectSettings) -> bool:
    still = [progress.kernel_still_s(beat.process) for beat in beats]
    return all(still_s is not None and still_s < s.no_progress_after_s for still_s in still)


def blind(snapshot: Snapshot) -> Verdict | None:
    """Unknown while a rank that was heard before is heard no more; its groups may still go on."""
    lost = [v.rank for v in snapshot.ranks.values() if v.link is Link.LOST and _is_watched(v)]
    if not lost:
        return None
    names = sorted({snapshot.ranks[rank].node for rank in lost})
    agents = "its agent is" if len(names) == 1 else "their agents are"
    few = ", ".join(names[:4])
    return State.UNKNOWN, f"no word from {ranges.named(lost)} ({few}): {agents} not heard"


def _is_watched(view: RankView) -> bool:
    return view.beat is not None and not process_states.has_ended(view.beat.process)


def still(memory: Memory, snapshot: Snapshot, limits: Limits, s: DetectSettings) -> Verdict | None:
    """Unknown where nothing has moved for long, although nobody is held up: never healthy."""
    quiet_s = progress.stalled_s(memory, snapshot.taken_s)
    alive = any(map(progress.is_alive, snapshot.ranks.values()))
    is_young = snapshot.age_s < s.starting_s
    if is_young or not alive or quiet_s < max(s.no_progress_after_s, limits.suspect_after_s):
        return None
    return State.UNKNOWN, f"nothing has moved for {quiet_s:.0f} s, and no rank is seen waiting"


def calm(memory: Memory, snapshot: Snapshot, s: DetectSettings) -> Verdict:
    """The state of a job that is heard and does not stall."""
    unseen = [rank for rank, view in snapshot.ranks.items() if view.beat is None]
    beats = [view.beat for view in snapshot.ranks.values() if view.beat is not None]
    is_young = snapshot.age_s < s.starting_s
    if unseen:
        reason = f"{len(beats)} of {snapshot.world_size} ranks report"
        return (State.STARTING if is_young else State.UNKNOWN), reason
    if all(beat.is_destroyed or process_states.has_ended(beat.process) for beat in beats):
        return State.HEALTHY, "all ranks have left training"
    if all(beat.depth is wire.Depth.BARE for beat in beats) and _main_threads_run(beats, s):
        return State.HEALTHY, "the main threads run; collectives are seen in samples of stacks only"
    if any(group.counter > 0 for beat in beats for group in beat.groups) or memory.has_progressed:
        return State.HEALTHY, "collectives go on"
    if is_young or any(beat.waits or beat.is_initialised for beat in beats):
        return State.STARTING, "no collective has been called yet"
    return State.UNKNOWN, "no counters: start the job under `hangwatch run` to see its collectives"
