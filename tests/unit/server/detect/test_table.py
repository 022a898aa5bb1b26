"""The table of states and times, each rule on both sides of its limit, on a fake clock.

A row says what a job shows and the second from which the state is another one: a second before that
the old state still stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import pytest
from tests.unit.server.detect.builders import (
    NONE,
    Beats,
    Clockwork,
    Findings,
    beat,
    changed,
    facts,
    finding,
    frozen_stack,
    stuck,
    view,
)

from hangwatch_agent import wire
from hangwatch_server import detect
from hangwatch_server.detect import DetectSettings, learning
from hangwatch_server.detect.memory import Memory
from hangwatch_server.model import Activity, Finding, GroupView, Kind, Limits, Link, RankView, State

Stacks = Callable[[float], dict[int, tuple[Activity, str]]]
STOPPED = facts(state="T")
WORKS = facts(cpu=0.5)
BUSY = wire.GpuFacts(index=0, utilisation=100.0)
LEARNT = Memory(gaps={"training": (8.0,) * 60}, pace={"training": 8.0}, seen_s=999.0)


@dataclass(frozen=True)
class Rule:
    """From second `at_s` on the state is `after`; a second before it is `before`."""

    name: str
    before: State
    after: State
    at_s: int
    beats: Beats
    found: Findings = finding
    stacks: Stacks = lambda at_s: {}
    memory: Memory = Memory()  # noqa: RUF009 - frozen
    settings: DetectSettings = DetectSettings()  # noqa: RUF009 - frozen


def still(at_s: float) -> list[RankView]:
    """The culprit's main thread has not run since the stall began, as the kernel says."""
    return stuck(facts(still_s=at_s))(at_s)


def waits_since_two(kind: Kind) -> Findings:
    def found(at_s: float) -> Finding:
        return finding(at_s, kind=kind, is_hard=True) if at_s >= 2 else NONE

    return found


def all_inside(at_s: float) -> Finding:
    return finding(at_s, (), kind=Kind.STALLED_COLLECTIVE, waiting="0-3")


def nobody_waits(at_s: float) -> Finding:
    return finding(at_s, (), kind=Kind.NO_PROGRESS, waiting="")


def init_waits(at_s: float) -> Finding:
    return finding(at_s, (1,), kind=Kind.INCOMPLETE_RENDEZVOUS, waiting="0")


def in_init(absent: wire.ProcessFacts | None, world: int = 2) -> Beats:
    """Rank 0 waits in init; rank 1 has this process, or none at all."""

    def beats(at_s: float) -> list[RankView]:
        others = [
            view(None, rank=rank, age_s=at_s)
            if absent is None
            else view(changed(beat(rank, process=absent), groups=()))
            for rank in range(1, world)
        ]
        return [view(changed(beat(0, counter=0), groups=())), *others]

    return beats


def announced(process: wire.ProcessFacts, phase: str, limit_s: float | None) -> Beats:
    def beats(at_s: float) -> list[RankView]:
        views = stuck(process)(at_s)
        given = changed(views[2].beat, phase=phase, phase_s=at_s, phase_limit_s=limit_s)
        return [*views[:2], view(given), views[3]]

    return beats


def lost_node(at_s: float) -> list[RankView]:
    views = stuck()(at_s)
    return [*views[:2], view(beat(2), link=Link.LOST, age_s=at_s), views[3]]


def on_gpu(*, queued: int, started: int | None = None) -> Beats:
    """The culprit's GPU is busy and its main thread spins; so many of its calls are unfinished."""

    def beats(at_s: float) -> list[RankView]:
        views = stuck(facts("R", 0.99))(at_s)
        given = views[2].beat
        assert given is not None
        group = msgspec.structs.replace(given.groups[0], seq=9 + queued, finished=9)
        group = msgspec.structs.replace(group, started=started)
        gpu = wire.GpuFacts(index=2, utilisation=100.0)
        return [*views[:2], view(changed(given, groups=(group,), gpu=gpu)), views[3]]

    return beats


def all_quiet(process: wire.ProcessFacts, timeout_s: float | None = None) -> Beats:
    """No rank moves, and all of their processes are like this one."""

    def beats(at_s: float) -> list[RankView]:
        return [view(beat(r, at_s, process=process, timeout_s=timeout_s)) for r in range(4)]

    return beats


RULES = (
    Rule(
        "hard: process gone in two samples",
        State.HEALTHY,
        State.HUNG,
        4,
        stuck(facts(state="gone", signal=9)),
        waits_since_two(Kind.MISSING_RANKS),
    ),
    Rule(
        "hard: mismatch in two samples",
        State.HEALTHY,
        State.HUNG,
        4,
        stuck(),
        waits_since_two(Kind.MISMATCH),
    ),
    Rule(
        "hard: cycle in two samples",
        State.HEALTHY,
        State.HUNG,
        4,
        stuck(),
        waits_since_two(Kind.DEADLOCK),
    ),
    Rule("suspected at the floor", State.HEALTHY, State.SUSPECTED, 10, stuck()),
    Rule("suspected at 3 x p99", State.HEALTHY, State.SUSPECTED, 24, stuck(), memory=LEARNT),
    Rule(
        "suspected at the most that can be learned",
        State.HEALTHY,
        State.SUSPECTED,
        300,
        stuck(),
        memory=replace(LEARNT, pace={"training": 200.0}),
    ),
    Rule("frozen is hung at the floor", State.SUSPECTED, State.HUNG, 15, stuck(STOPPED)),
    Rule(
        "frozen is hung at 5 x p99",
        State.SUSPECTED,
        State.HUNG,
        40,
        stuck(STOPPED),
        memory=LEARNT,
    ),
    Rule(
        "one stack and no run for ten seconds are frozen",
        State.SUSPECTED,
        State.HUNG,
        15,
        still,
        stacks=frozen_stack(),
    ),
    Rule("without stacks frozen takes longer", State.SUSPECTED, State.HUNG, 32, stuck()),
    Rule("works: slow", State.SUSPECTED, State.SLOW, 15, stuck(WORKS)),
    Rule("works: hung after five minutes", State.SLOW, State.HUNG, 300, stuck(WORKS)),
    Rule(
        "waits for its GPU, which is in a collective of its own",
        State.SUSPECTED,
        State.HUNG,
        19,
        on_gpu(queued=1),
        stacks=frozen_stack(Activity.GPU),
    ),
    Rule(
        "waits for a long kernel of its GPU",
        State.SLOW,
        State.HUNG,
        300,
        on_gpu(queued=0),
        stacks=frozen_stack(Activity.GPU),
    ),
    Rule(
        "waits for a long kernel of its GPU, before a collective that has not begun",
        State.SLOW,
        State.HUNG,
        300,
        on_gpu(queued=1, started=9),
        stacks=frozen_stack(Activity.GPU),
    ),
    Rule(
        "frozen in a recognised phase",
        State.EXPECTED_WAIT,
        State.HUNG,
        120,
        still,
        stacks=frozen_stack(Activity.CHECKPOINT),
    ),
    Rule(
        "frozen in an announced phase",
        State.EXPECTED_WAIT,
        State.HUNG,
        200,
        announced(STOPPED, "export", 200.0),
    ),
    Rule(
        "works in a checkpoint",
        State.EXPECTED_WAIT,
        State.HUNG,
        900,
        stuck(WORKS),
        stacks=frozen_stack(Activity.CHECKPOINT),
    ),
    Rule(
        "works in a compilation",
        State.EXPECTED_WAIT,
        State.HUNG,
        1800,
        stuck(WORKS),
        stacks=frozen_stack(Activity.COMPILE),
    ),
    Rule(
        "works in an evaluation",
        State.EXPECTED_WAIT,
        State.HUNG,
        1800,
        stuck(WORKS),
        stacks=frozen_stack(Activity.EVALUATION),
    ),
    Rule(
        "works in the loading of a model",
        State.EXPECTED_WAIT,
        State.HUNG,
        600,
        stuck(WORKS),
        stacks=frozen_stack(Activity.MODEL_LOADING),
    ),
    Rule(
        "D state on storage is suspected for two minutes",
        State.SUSPECTED,
        State.HUNG,
        120,
        stuck(facts(state="D", wchan="rpc_wait_bit_killable")),
    ),
    Rule(
        "D state in a driver is any frozen culprit",
        State.SUSPECTED,
        State.HUNG,
        32,
        stuck(facts(state="D", wchan="nvidia_ioctl")),
    ),
    Rule(
        "all entered: no rank is blamed for a minute",
        State.SUSPECTED,
        State.HUNG,
        60,
        stuck(),
        all_inside,
        frozen_stack(Activity.COLLECTIVE, rank=0),
    ),
    Rule(
        "init: absent rank frozen elsewhere",
        State.SUSPECTED,
        State.HUNG,
        15,
        in_init(STOPPED),
        init_waits,
    ),
    Rule(
        "init: no process of two ranks",
        State.SUSPECTED,
        State.HUNG,
        61,
        in_init(None),
        init_waits,
    ),
    Rule(
        "init: no process among four hundred ranks",
        State.SUSPECTED,
        State.HUNG,
        62,
        in_init(None, world=400),
        init_waits,
    ),
    Rule(
        "init: absent rank works elsewhere",
        State.SUSPECTED,
        State.SLOW,
        61,
        in_init(WORKS),
        init_waits,
    ),
    Rule(
        "nobody waits: healthy for half a minute",
        State.HEALTHY,
        State.UNKNOWN,
        30,
        all_quiet(facts()),
        nobody_waits,
    ),
    Rule(
        "nobody waits or runs: hung after ten minutes",
        State.UNKNOWN,
        State.HUNG,
        600,
        all_quiet(facts(state="D")),
        nobody_waits,
    ),
    Rule(
        "nobody waits or runs: hung at the group's timeout",
        State.UNKNOWN,
        State.HUNG,
        300,
        all_quiet(facts(), timeout_s=300.0),
        nobody_waits,
    ),
    Rule(
        "before the group's timeout, though it works",
        State.SLOW,
        State.HUNG,
        140,
        stuck(WORKS, timeout_s=200.0),
    ),
    Rule(
        "before the group's timeout in a phase: evidence, no alert",
        State.EXPECTED_WAIT,
        State.SUSPECTED,
        140,
        stuck(WORKS, timeout_s=200.0),
        stacks=frozen_stack(Activity.CHECKPOINT),
    ),
    Rule(
        "node lost after a minute",
        State.UNKNOWN,
        State.HUNG,
        60,
        lost_node,
    ),
    Rule(
        "a job that ran before it was watched",
        State.SUSPECTED,
        State.HUNG,
        60,
        lambda at_s: [
            view(beat(r, at_s, counter=50, process=STOPPED if r == 2 else None)) for r in range(4)
        ],
    ),
    Rule(
        "limits from before the server's restart",
        State.SUSPECTED,
        State.HUNG,
        90,
        stuck(STOPPED),
        memory=detect.inherit(
            Memory(), Limits(suspect_after_s=54.0, confirm_after_s=90.0, why=""), ()
        ),
    ),
    Rule(
        "two frozen pauses that ended by themselves",
        State.SUSPECTED,
        State.HUNG,
        54,
        stuck(STOPPED),
        memory=Memory(recovered=(31.0, 36.0)),
    ),
    Rule(
        "pauses put an alarm off for five minutes at most",
        State.SUSPECTED,
        State.HUNG,
        300,
        stuck(STOPPED),
        memory=Memory(recovered=(280.0, 290.0)),
    ),
    Rule(
        "one frozen pause puts nothing off",
        State.SUSPECTED,
        State.HUNG,
        15,
        stuck(STOPPED),
        memory=Memory(recovered=(36.0,)),
    ),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_state_changes_at_its_limit_and_not_before(rule: Rule) -> None:
    clock = Clockwork(
        rule.beats, rule.found, rule.stacks, memory=rule.memory, settings=rule.settings
    )

    clock.run_to(rule.at_s)

    assert clock.at(rule.at_s - 1).state is rule.before
    assert clock.at(rule.at_s).state is rule.after


NEVER = {
    "hung while the culprit works under an announced limit": (
        announced(WORKS, "export", 5000.0),
        finding,
    ),
    "hung though nobody waits, while threads run": (
        lambda at_s: all_quiet(facts(main_cpu_s=at_s * 0.001))(at_s),
        nobody_waits,
    ),
    "hung though nobody waits, when the kernel counts runs": (
        all_quiet(facts(still_s=0.5)),
        nobody_waits,
    ),
    "hung though nobody waits, while every GPU is in a long kernel": (
        lambda at_s: [
            view(changed(beat(r, at_s, process=facts("R", 0.99, still_s=at_s)), gpu=BUSY))
            for r in range(4)
        ],
        nobody_waits,
    ),
    "hung past destroy_process_group": (
        lambda at_s: [view(changed(beat(r, at_s), is_destroyed=True)) for r in range(4)],
        nobody_waits,
    ),
    "hung while a rank in training is not heard": (
        lambda at_s: [*all_quiet(facts())(at_s)[:3], view(beat(3), link=Link.LATE, age_s=at_s)],
        nobody_waits,
    ),
}


@pytest.mark.parametrize("name", NEVER)
def test_it_is_never(name: str) -> None:
    beats, found = NEVER[name]

    assert State.HUNG not in Clockwork(beats, found).run_to(1300).states()


SHARES = [
    (facts(cpu=0.049), State.HUNG),
    (facts(cpu=0.05), State.SLOW),
    (facts(cpu=0.01, delay=0.48), State.HUNG),
    (facts(cpu=0.01, delay=0.49), State.SLOW),
]


@pytest.mark.parametrize(("process", "state"), SHARES)
def test_main_thread_works_from_a_twentieth_of_a_core_used_or_half_of_one_wanted(
    process: wire.ProcessFacts, state: State
) -> None:
    assert Clockwork(stuck(process), finding, frozen_stack()).run(30).states()[-1] is state


@pytest.mark.parametrize(("rate", "state"), [(131_071, State.HUNG), (131_072, State.SLOW)])
def test_rank_reads_or_writes_from_128_kib_a_second(rate: int, state: State) -> None:
    def beats(at_s: float) -> list[RankView]:
        return stuck(facts(io_bytes=int(at_s * rate)))(at_s)

    assert Clockwork(beats, finding, frozen_stack()).run(30).states()[-1] is state


@pytest.mark.parametrize(("share", "state"), [(0.24, State.HUNG), (0.26, State.SLOW)])
def test_other_threads_work_from_a_quarter_of_a_core(share: float, state: State) -> None:
    def beats(at_s: float) -> list[RankView]:
        return stuck(facts(cpu_s=at_s * share))(at_s)

    assert Clockwork(beats, finding, frozen_stack()).run(30).states()[-1] is state


@pytest.mark.parametrize(("wchan", "state"), [("do_wait", State.SLOW), ("", State.HUNG)])
def test_any_child_at_work_counts_where_the_rank_waits_for_it(wchan: str, state: State) -> None:
    child = wire.ChildFacts(pid=9, name="prepare", role="other", state="R", cpu_share=0.9)
    process = facts(wchan=wchan, children=(child,))

    assert Clockwork(stuck(process), finding, frozen_stack()).run(30).states()[-1] is state


def child(name: str = "prepare", **facts: object) -> wire.ChildFacts:
    told = wire.ChildFacts(pid=9, name=name, role="other", state="S", cpu_share=0.0)
    return msgspec.structs.replace(told, **facts)


def waiting_for(*children: wire.ChildFacts, ended: float | None = None) -> wire.ProcessFacts:
    process = facts(wchan="do_wait", children=children)
    return msgspec.structs.replace(process, ended_share=ended)


AT_WORK = [
    (waiting_for(child()), State.HUNG),
    (waiting_for(child(io_rate=16_383.0)), State.HUNG),
    (waiting_for(child(io_rate=16_384.0)), State.SLOW),
    (waiting_for(child(), ended=0.04), State.HUNG),
    (waiting_for(child(), ended=0.06), State.SLOW),
    (waiting_for(child(role="helper", cpu_share=0.9)), State.SUSPECTED),
    (waiting_for(child("ssh")), State.SUSPECTED),
    (waiting_for(child("bash", pid=8), child("ssh", parent=8)), State.SUSPECTED),
    (waiting_for(child("ssh", pid=8), child("rsync")), State.HUNG),
    (waiting_for(child("cp", state="D", wchan="nfs_wait_bit_killable")), State.SUSPECTED),
    (waiting_for(child("cp", state="D", wchan="kernel_clone")), State.HUNG),
]


@pytest.mark.parametrize(("process", "state"), AT_WORK)
def test_what_a_child_that_is_waited_for_shows_decides_about_its_rank(
    process: wire.ProcessFacts, state: State
) -> None:
    """Of one that runs a program on another machine nothing can be told for some minutes."""
    assert Clockwork(stuck(process), finding, frozen_stack()).run(25).states()[-1] is state


def test_child_that_only_the_kernel_speaks_of_takes_longer_to_call_frozen() -> None:
    clock = Clockwork(stuck(facts(wchan="do_wait")), finding, frozen_stack())

    assert State.HUNG not in clock.run_to(28).states()
    assert clock.run_to(40).states()[-1] is State.HUNG


@pytest.mark.parametrize(("every_s", "state"), [(8, State.SLOW), (14, State.HUNG)])
def test_child_that_works_in_bursts_is_at_work_between_them(every_s: int, state: State) -> None:
    def beats(at_s: float) -> list[RankView]:
        is_burst = at_s % every_s < 1.0
        return stuck(waiting_for(child(cpu_share=0.5 if is_burst else 0.0)))(at_s)

    clock = Clockwork(beats, finding, frozen_stack()).run_to(60)

    assert (State.HUNG in clock.states()) == (state is State.HUNG)
    assert State.SLOW in clock.states()


@pytest.mark.parametrize(("quiet_s", "state"), [(4.9, State.EXPECTED_WAIT), (5.0, State.HUNG)])
def test_rank_goes_on_in_another_group_for_five_seconds_after_a_call(
    quiet_s: float, state: State
) -> None:
    """So ranks that evaluate in a group of their own hold nobody up for nothing."""

    def beats(at_s: float) -> list[RankView]:
        views = stuck()(at_s)
        return [*views[:2], view(beat(2, min(at_s, quiet_s))), views[3]]

    assert Clockwork(beats, finding, frozen_stack()).run(100).states()[-1] is state


@pytest.mark.parametrize(("count", "expected_s"), [(49, 1.0), (50, 6.0)])
def test_limits_are_learned_from_fifty_gaps_on(count: int, expected_s: float) -> None:
    gaps = (6.0,) * 3 + (1.0,) * (count - 3)

    assert learning.pace_s(gaps, DetectSettings()) == expected_s


@pytest.mark.parametrize(("odd", "expected_s"), [(2, 1.0), (3, 30.0)])
def test_two_odd_pauses_set_no_limit(odd: int, expected_s: float) -> None:
    gaps = (30.0,) * odd + (1.0,) * (60 - odd)

    assert learning.pace_s(gaps, DetectSettings()) == expected_s


@pytest.mark.parametrize(("shift_s", "is_progress"), [(1.5, False), (1.6, True)])
def test_only_a_clear_shift_of_the_origin_is_progress(shift_s: float, is_progress: bool) -> None:
    clock = Clockwork(stuck(STOPPED), finding).run(20)
    clock.findings = lambda at_s: finding(at_s - shift_s)

    clock.run(21, since_s=21)

    assert clock.memory.has_progressed is is_progress


def test_limits_belong_to_the_phase_that_the_job_announces() -> None:
    gaps = {"training": (1.0,) * 60, "evaluation": (20.0,) * 60}
    memory = Memory(gaps=gaps, pace={"training": 1.0, "evaluation": 20.0})

    def in_phase(phase: str) -> detect.Decision:
        def beats(at_s: float) -> list[RankView]:
            return [view(changed(beat(r, at_s), phase=phase)) for r in range(4)]

        return Clockwork(beats, lambda at_s: NONE, memory=memory).tick(0)

    assert in_phase("train").limits.suspect_after_s == 10
    assert (
        in_phase("train").limits.why
        == "3 x p99 (1.0 s) of 60 gaps in training is under the 10 s floor"
    )
    assert in_phase("eval").limits.suspect_after_s == 60
    assert "60 gaps in evaluation is over" in in_phase("eval").limits.why


def test_gaps_are_learned_in_the_phase_that_was_announced_for_them() -> None:
    def beats(at_s: float) -> list[RankView]:
        phase = "train" if at_s % 40 < 20 else "validation"
        stall_s = at_s % 2 if phase == "train" else at_s % 5
        return [view(changed(beat(r, stall_s), phase=phase)) for r in range(4)]

    memory = Clockwork(beats, lambda at_s: NONE).run(400).memory

    assert max(memory.gaps["training"]) <= 2
    assert memory.pace["evaluation"] == 4


def test_longest_priors_apply_only_with_evidence_of_compiling_or_loading() -> None:
    clock = Clockwork(stuck(facts(still_s=60.0)), finding, frozen_stack())

    assert clock.run(20).first(State.HUNG) == 15
    assert (
        clock.at(15).limits.why
        == "0 of 50 gaps in training seen: the floors of this start-up apply"
    )


@pytest.mark.parametrize("timeout_s", [float("nan"), float("inf"), -5.0, 0.0])
def test_timeout_that_is_none_cuts_nothing(timeout_s: float) -> None:
    clock = Clockwork(stuck(STOPPED, timeout_s=timeout_s), finding).run(15)

    assert clock.first(State.HUNG) == 15


@pytest.mark.parametrize(("timeout_s", "hung_s"), [(73.0, 13), (None, 15)])
def test_timeout_that_the_group_was_made_with_cuts_the_limits(
    timeout_s: float | None, hung_s: int
) -> None:
    group = GroupView(
        gid="g", name="dp", description="", backend="gloo", ranks=(0, 1), timeout_s=timeout_s
    )
    clock = Clockwork(stuck(STOPPED), finding, groups={"g": group}).run(16)

    assert clock.first(State.HUNG) == hung_s


def test_limits_say_what_cut_them() -> None:
    clock = Clockwork(stuck(timeout_s=72.0), finding).run(1)

    assert clock.at(1).limits.confirm_after_s == 12
    assert clock.at(1).limits.why.endswith(
        "; cut so that evidence is stored 60 s before the group's timeout of 72 s"
    )


def test_evaluation_in_progress_after_a_break_of_our_own_blames_no_node() -> None:
    """The server stood still for two minutes: one node is heard again a moment before the other."""
    clock = Clockwork(lambda at_s: [view(beat(r)) for r in range(4)], lambda at_s: NONE).run(5)
    clock.beats = lambda at_s: lost_node(at_s)
    clock.findings = finding

    clock.run(129, since_s=125)

    assert State.HUNG not in clock.states()


def test_gap_in_our_own_looking_teaches_nothing() -> None:
    clock = Clockwork(lambda at_s: [view(beat(r, at_s % 2)) for r in range(4)], lambda at_s: NONE)

    clock.run(100).run(500, since_s=400)

    assert max(clock.memory.gaps["training"]) <= 2


def test_job_that_stands_still_without_a_wait_is_not_healthy_for_ever() -> None:
    clock = Clockwork(stuck(), lambda at_s: NONE).run(31)

    assert clock.at(29).state is State.HEALTHY
    assert clock.at(30).state is State.UNKNOWN


def bare(still_s: float) -> Beats:
    def beats(at_s: float) -> list[RankView]:
        process = facts(still_s=min(at_s, still_s))
        return [
            view(
                msgspec.structs.replace(beat(r, process=process), depth=wire.Depth.BARE, groups=())
            )
            for r in range(4)
        ]

    return beats


def test_bare_job_is_healthy_while_the_kernel_runs_its_main_threads() -> None:
    assert Clockwork(bare(0.2), lambda at_s: NONE).run(200).states() == [State.HEALTHY]
    assert Clockwork(bare(900.0), lambda at_s: NONE).run(200).states() == [
        State.HEALTHY,
        State.UNKNOWN,
    ]
