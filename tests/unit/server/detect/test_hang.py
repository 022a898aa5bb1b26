"""Real hangs on a fake clock: each is suspected and confirmed in time, on the right evidence."""

from __future__ import annotations

from tests.unit.server.detect.builders import (
    NONE,
    Clockwork,
    beat,
    facts,
    finding,
    frozen_stack,
    moving_stack,
    stuck,
    view,
)

from hangwatch_agent import wire
from hangwatch_server.detect import DetectSettings
from hangwatch_server.model import Activity, Finding, Kind, Link, RankView, State


def test_frozen_culprit_is_suspected_at_ten_and_hung_before_twenty_seconds() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack()).run(25)

    assert clock.states() == [State.HEALTHY, State.SUSPECTED, State.HUNG]
    assert clock.first(State.SUSPECTED) == 10
    hung_s = clock.first(State.HUNG)
    assert hung_s is not None
    assert 15 <= hung_s <= 20


def test_first_capture_is_wished_for_at_four_fifths_of_the_limit() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack()).run(12)

    wished = [at_s for at_s, decision in clock.log for _ in decision.wishes]
    assert wished[0] == 8
    assert clock.log[8][1].wishes[0].ranks == (2,)


def test_waiting_ranks_are_captured_once_at_suspicion_and_once_when_hung() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack()).run(60)

    wishes = [(at_s, wish.ranks) for at_s, d in clock.log for wish in d.wishes if 0 in wish.ranks]
    stacks = [(at_s, ranks) for at_s, ranks in wishes if 2 not in ranks]
    assert [ranks for _, ranks in stacks] == [(0,), (0,)]
    assert stacks[0][0] == 10


def test_recorder_entries_are_wished_for_at_suspicion_where_they_are_missing() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack()).run(12)

    recorder = [
        (at_s, wish.ranks)
        for at_s, decision in clock.log
        for wish in decision.wishes
        if wire.CaptureKind.RECORDER in wish.kinds
    ]
    assert recorder == [(10, (2, 0))]


def test_no_wish_names_more_than_ten_ranks() -> None:
    culprits = tuple(range(1, 40))

    def found(at_s: float) -> Finding:
        return finding(at_s, culprits, waiting="0")

    clock = Clockwork(stuck(world=40), found).run(30)

    assert max(len(wish.ranks) for _, decision in clock.log for wish in decision.wishes) == 10


def test_culprit_that_works_is_slow_and_hung_only_after_five_minutes() -> None:
    clock = Clockwork(stuck(facts(cpu=0.9)), finding, frozen_stack()).run_to(310)

    assert clock.states() == [State.HEALTHY, State.SUSPECTED, State.SLOW, State.HUNG]
    assert clock.first(State.SLOW) == 15
    assert clock.first(State.HUNG) == 300


def test_culprit_whose_stack_moves_is_not_frozen() -> None:
    clock = Clockwork(stuck(), finding, moving_stack()).run(120)

    assert State.HUNG not in clock.states()
    assert clock.states()[-1] is State.SLOW


def test_cpu_share_just_under_the_limit_is_frozen_and_at_it_works() -> None:
    under = Clockwork(stuck(facts(cpu=0.049)), finding, frozen_stack()).run(30)
    at_limit = Clockwork(stuck(facts(cpu=0.05)), finding, frozen_stack()).run(30)

    assert State.HUNG in under.states()
    assert State.HUNG not in at_limit.states()


def test_loader_worker_that_works_keeps_its_rank_from_being_frozen() -> None:
    worker = wire.ChildFacts(pid=9, name="pt_data_worker", role="loader", state="R", cpu_share=0.8)
    helper = wire.ChildFacts(pid=8, name="logger", role="other", state="R", cpu_share=0.8)

    working = Clockwork(stuck(facts(children=(worker,))), finding, frozen_stack()).run(30)
    helped = Clockwork(stuck(facts(children=(helper,))), finding, frozen_stack()).run(30)

    assert State.HUNG not in working.states()
    assert State.HUNG in helped.states()


def test_culprit_that_reads_is_not_frozen() -> None:
    def beats(at_s: float) -> list[RankView]:
        return stuck(facts(io_bytes=int(at_s * 10_000_000)))(at_s)

    clock = Clockwork(beats, finding, frozen_stack()).run(60)

    assert State.HUNG not in clock.states()


def test_probes_own_writing_does_not_hide_a_frozen_rank() -> None:
    def beats(at_s: float) -> list[RankView]:
        return stuck(facts(io_bytes=int(at_s * 65_536)))(at_s)

    clock = Clockwork(beats, finding, frozen_stack()).run(30)

    assert State.HUNG in clock.states()


def test_without_stacks_a_frozen_rank_is_confirmed_later() -> None:
    clock = Clockwork(stuck(), finding).run(60)

    hung_s = clock.first(State.HUNG)
    assert hung_s is not None
    assert 30 <= hung_s <= 34


def test_stopped_process_needs_no_stack() -> None:
    clock = Clockwork(stuck(facts(state="T")), finding).run(30)

    assert clock.first(State.HUNG) == 15


def test_hang_stays_until_progress_and_then_clears() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack()).run(40)
    assert clock.states()[-1] is State.HUNG

    clock.findings = lambda at_s: NONE
    clock.beats = lambda at_s: [view(beat(rank)) for rank in range(4)]
    clock.run(42, since_s=41)

    assert clock.states()[-1] is State.HEALTHY


def test_same_hang_is_confirmed_again_promptly_after_the_server_restarts() -> None:
    def found(at_s: float) -> Finding:
        return finding(500 + at_s)

    clock = Clockwork(lambda at_s: stuck()(500 + at_s), found, frozen_stack()).run(15)

    hung_s = clock.first(State.HUNG)
    assert hung_s is not None
    assert hung_s <= 12


def test_evidence_is_taken_before_a_short_group_timeout() -> None:
    clock = Clockwork(stuck(facts(cpu=0.9), timeout_s=120.0), finding, frozen_stack()).run(70)

    assert clock.first(State.HUNG) == 60


def test_earlier_stall_at_the_same_line_is_no_proof() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack())
    clock.run(9)
    clock.findings = lambda at_s: finding(at_s - 9.5)
    clock.beats = lambda at_s: stuck()(at_s - 9.5)
    clock.run(27, since_s=10)

    assert State.HUNG not in clock.states()


def test_all_inside_a_collective_blames_nobody_and_takes_longer() -> None:
    def found(at_s: float) -> Finding:
        return finding(at_s, (), kind=Kind.STALLED_COLLECTIVE, waiting="0-3")

    clock = Clockwork(stuck(), found, frozen_stack(Activity.COLLECTIVE, rank=0)).run(70)

    assert clock.first(State.SUSPECTED) == 10
    assert clock.first(State.HUNG) == 60


def test_nobody_in_a_collective_is_unknown_until_ten_minutes() -> None:
    def found(at_s: float) -> Finding:
        return finding(at_s, (), kind=Kind.NO_PROGRESS, waiting="0-3")

    clock = Clockwork(stuck(), found, frozen_stack(rank=0)).run_to(610)

    assert clock.first(State.UNKNOWN) == 32
    assert clock.first(State.HUNG) == 600


def test_limits_are_settings() -> None:
    settings = DetectSettings(suspect_after_s=4.0, confirm_after_s=6.0, frozen_window_s=2.0)

    clock = Clockwork(stuck(), finding, frozen_stack(), settings=settings).run(12)

    assert clock.first(State.SUSPECTED) == 4
    assert clock.first(State.HUNG) == 7


def test_culprit_on_a_node_that_is_not_heard_is_unknown_for_a_minute() -> None:
    def beats(at_s: float) -> list[RankView]:
        views = stuck()(at_s)
        views[2] = view(beat(2), link=Link.LOST, age_s=at_s)
        return views

    clock = Clockwork(beats, finding).run(70)

    assert clock.first(State.UNKNOWN) is not None
    assert clock.first(State.HUNG) == 60


def test_node_that_died_while_the_server_was_down_is_hung_after_a_minute_too() -> None:
    """Its rank is known from the database alone; before that nothing is said for certain."""

    def beats(at_s: float) -> list[RankView]:
        views = stuck()(at_s)
        views[2] = view(None, rank=2, node="node-2", link=Link.LOST, age_s=at_s)
        return views

    clock = Clockwork(beats, finding).run(70)

    assert clock.first(State.HUNG) == 60


def test_rank_that_its_node_reports_no_more_is_never_hung() -> None:
    def beats(at_s: float) -> list[RankView]:
        views = stuck()(at_s)
        views[2] = view(None, rank=2, node="node-2", age_s=at_s)
        return views

    assert Clockwork(beats, finding).run_to(400).states()[-1] is State.UNKNOWN


def test_server_that_hears_almost_nobody_blames_no_node() -> None:
    def beats(at_s: float) -> list[RankView]:
        views = [view(beat(r), link=Link.LOST, age_s=at_s) for r in range(1, 4)]
        return [view(beat(0, at_s)), *views]

    clock = Clockwork(beats, lambda at_s: finding(at_s, (1, 2, 3), waiting="0")).run(120)

    assert State.HUNG not in clock.states()


def test_rank_that_never_reported_is_never_hung() -> None:
    def beats(at_s: float) -> list[RankView]:
        views = stuck()(at_s)
        views[2] = view(None, rank=2)
        return views

    clock = Clockwork(beats, finding).run_to(400)

    assert State.HUNG not in clock.states()
    assert clock.states()[-1] is State.UNKNOWN
