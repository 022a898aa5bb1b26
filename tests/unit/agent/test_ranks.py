"""From a record's payload to the wire: ages, group identity, bounds."""

from __future__ import annotations

import pytest

from hangwatch_agent import ranks, wire
from hangwatch_agent.groups import Groups
from hangwatch_agent.payload import (
    CallPayload,
    CountPayload,
    EntryPayload,
    GroupPayload,
    RecordPayload,
    WaitPayload,
)

SECOND = 1_000_000_000
NOW = 1000 * SECOND
LAUNCH = wire.Launch(key="k", name="n")
POSITION = ranks.Position(LAUNCH, 1, 4, 1, 77, 5, True, "train.py")
SLEEPING = wire.ProcessFacts(state="S")


def group(**fields: object) -> GroupPayload:
    defaults: dict[str, object] = {"name": "0", "ranks": "3,1,2,0", "moved_ns": NOW - 4 * SECOND}
    return GroupPayload(**{**defaults, **fields})  # type: ignore[arg-type]


def told(payload: RecordPayload, facts: wire.ProcessFacts = SLEEPING) -> ranks.Translated:
    described = Groups(LAUNCH.key).describe(payload.groups, NOW)
    return ranks.probed(POSITION, facts, payload, described, NOW)


def beat_of(payload: RecordPayload, facts: wire.ProcessFacts = SLEEPING) -> wire.RankBeat:
    return told(payload, facts).beat


def record(**fields: object) -> RecordPayload:
    return RecordPayload(**{"beat": 1, "at_ns": NOW - SECOND // 2, **fields})  # type: ignore[arg-type]


def test_group_identity_is_the_sorted_ranks_whatever_their_order_in_the_group() -> None:
    (first,) = told(record(groups=[group()])).groups
    (second,) = told(record(groups=[group(ranks="0-3")])).groups

    assert first.ranks == "0-3"
    assert first.gid == second.gid == wire.gid_of("k", "0", "0-3", 1)


def test_remade_group_is_another_group() -> None:
    infos = told(record(groups=[group(epoch=1), group(epoch=2)])).groups

    assert len({info.gid for info in infos}) == 2


def test_ages_are_differences_of_the_monotonic_clock() -> None:
    payload = record(
        groups=[
            group(
                entries=[EntryPayload(seq=3, op="gloo:all_reduce", retired=False)],
                dumped_ns=NOW - SECOND,
                counter=3,
                dumped_counter=3,
            )
        ],
        waits=[WaitPayload(what="new_group", since_ns=NOW - 9 * SECOND)],
        phase="checkpoint",
        phase_since_ns=NOW - 2 * SECOND,
    )

    beat = beat_of(payload)

    assert beat.beat_age_s == pytest.approx(0.5)
    assert beat.groups[0].stall_s == pytest.approx(4.0)
    assert beat.groups[0].entries_age_s == pytest.approx(1.0)
    assert beat.waits[0].age_s == pytest.approx(9.0)
    assert beat.phase_s == pytest.approx(2.0)


def test_entries_are_current_until_the_counter_moves() -> None:
    entries = [EntryPayload(seq=seq, op="all_reduce", retired=seq < 3) for seq in (1, 2, 3)]
    stalled = group(entries=entries, dumped_ns=NOW, counter=3, dumped_counter=3)
    moving = group(entries=entries, dumped_ns=NOW, counter=9, dumped_counter=3)

    still, moved = (beat_of(record(groups=[item])).groups[0] for item in (stalled, moving))

    assert still.are_entries_current
    assert (still.seq, len(still.entries)) == (3, 3)
    assert not moved.are_entries_current
    assert (moved.seq, [item.seq for item in moved.entries]) == (None, [3])


def test_calls_and_counts_refer_to_the_group_of_their_epoch() -> None:
    payload = record(
        groups=[group(epoch=2)],
        calls=[
            CallPayload(op="recv", group="0", epoch=2, since_ns=NOW - SECOND, peer=3, seq=1),
            CallPayload(op="recv", group="0", epoch=1),
        ],
        p2p=[CountPayload(group="0", epoch=2, peer=3, send=False, posted=1, done=0)],
    )

    beat = beat_of(payload)

    assert [(call.op, call.peer, call.age_s) for call in beat.calls] == [("recv", 3, 1.0)]
    assert beat.p2p[0].gid == beat.groups[0].gid


def test_op_loses_its_backend_and_sizes_are_bounded() -> None:
    sent = ranks.entry(
        EntryPayload(
            seq=1,
            op="nccl:_all_gather_base",
            retired=False,
            input_sizes=[[1] * 99] * 99,
            timeout_ms=25000,
        )
    )

    assert sent.op == "_all_gather_base"
    assert len(sent.input_sizes) == ranks.MAX_SIZES
    assert len(sent.input_sizes[0]) == ranks.MAX_DIMENSIONS
    assert sent.timeout_s == 25.0


def test_group_with_unreadable_ranks_is_left_out_and_said_to_be() -> None:
    beat = beat_of(record(groups=[group(ranks="0-99999999"), group()]))

    assert len(beat.groups) == 1
    assert "1 of 2 groups" in beat.lacks[-1]


def test_what_did_not_fit_is_said() -> None:
    assert "3 items" in beat_of(record(omitted=3)).lacks[-1]


@pytest.mark.parametrize(
    ("state", "answers", "is_gil_held", "is_unresponsive"),
    [
        ("S", True, True, False),
        ("S", False, False, True),
        ("S", None, False, False),
        ("T", True, False, True),
        ("D", None, False, True),
        ("gone", False, False, False),
    ],
)
def test_silent_probe_is_judged_by_socket_and_state(
    state: str, answers: bool | None, is_gil_held: bool, is_unresponsive: bool
) -> None:
    facts = ranks.with_answer(
        wire.ProcessFacts(state=state), is_silent=True, socket_answers=answers
    )

    assert (facts.is_gil_held, facts.is_unresponsive) == (is_gil_held, is_unresponsive)


def test_probe_that_our_own_capture_stops_is_never_judged() -> None:
    facts = wire.ProcessFacts(state="t", is_being_read=True)

    assert ranks.with_answer(facts, is_silent=True, socket_answers=False) == facts


def test_probe_that_writes_is_never_judged() -> None:
    facts = ranks.with_answer(SLEEPING, is_silent=False, socket_answers=False)

    assert facts is SLEEPING


def test_bare_rank_says_what_it_lacks() -> None:
    beat = ranks.bare(POSITION, SLEEPING, ranks.NO_PROBE).beat

    assert beat.depth is wire.Depth.BARE
    assert "hangwatch run" in beat.lacks[0]


def test_plain_progress_is_not_material_but_a_stall_is() -> None:
    moving = [ranks.material(SLEEPING, record(groups=[group(counter=count)])) for count in (5, 6)]
    stalled = ranks.material(
        SLEEPING, record(groups=[group(counter=6, dumped_counter=6, dumped_ns=NOW)])
    )

    assert moving[0] == moving[1] != stalled


@pytest.mark.parametrize(
    ("told_s", "expected"),
    [(600.0, 600.0), (None, None), (-1.0, None), (0.0, None), (1e12, None), (float("nan"), None)],
)
def test_only_a_timeout_that_can_come_to_pass_is_passed_on(
    told_s: float | None, expected: float | None
) -> None:
    (info,) = told(record(groups=[group(timeout_s=told_s)])).groups

    assert info.timeout_s == expected


@pytest.mark.parametrize(
    ("moved_s", "counter", "is_moving"),
    [(1.0, 5, True), (4.0, 5, False), (1.0, 0, False), (-9.0, 5, False)],
    ids=["just now", "some seconds ago", "no call yet", "a time that is yet to come"],
)
def test_rank_goes_on_while_a_counter_has_moved_within_seconds(
    moved_s: float, counter: int, is_moving: bool
) -> None:
    moved = group(counter=counter, moved_ns=NOW - int(moved_s * SECOND))

    assert ranks.is_moving(record(groups=[moved]), NOW) is is_moving
