"""What is read out of a recorder's dump, above all of NCCL's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.recorded import BASE_NS, Recorder

from hangwatch_agent.probe import dump


def told(recorder: Recorder, group: str = "0", limit: int = 64) -> dump.GroupDump:
    found = dump.Dump(dump.newest_first(recorder.dump()), [group], limit)
    return found.groups[group]


def seqs(entries: list[dict[str, Any]]) -> list[int]:
    return [entry["seq"] for entry in entries]


def test_newest_entries_come_first() -> None:
    recorder = Recorder("gloo")
    for seq in (1, 2, 3):
        recorder.collective("0", seq)

    found = [entry["collective_seq_id"] for entry in dump.newest_first(recorder.dump())]

    assert found == [3, 2, 1]


def test_spaced_json_of_another_torch_is_read_whole() -> None:
    recorder = Recorder("gloo")
    recorder.collective("0", 1)
    recorder.collective("0", 2)
    answer = json.dumps(json.loads(recorder.dump()), indent=1).encode()

    assert [entry["op_id"] for entry in dump.newest_first(answer)] == [1, 0]


def test_dump_without_entries_gives_none() -> None:
    assert list(dump.newest_first(Recorder().dump())) == []


def test_gloo_entry_loses_its_prefix_and_claims_no_start() -> None:
    recorder = Recorder("gloo")
    recorder.collective("0", 6, state="scheduled")

    (found,) = told(recorder).collectives

    assert (found["op"], found["seq"], found["retired"]) == ("all_reduce", 6, False)
    assert found["started"] is None


def test_nccl_without_timing_does_not_tell_queued_from_started() -> None:
    recorder = Recorder()
    recorder.collective("0", 1)
    recorder.collective("0", 2, state="scheduled")

    first, second = told(recorder).collectives

    assert (first["retired"], second["retired"]) == (True, False)
    assert second["started"] is None


def test_nccl_with_start_events_tells_a_queued_kernel() -> None:
    recorder = Recorder(is_timed=True)
    recorder.collective("0", 1)
    recorder.collective("0", 2, state="started")
    recorder.collective("0", 3, state="scheduled")

    found = told(recorder).collectives

    assert [entry["started"] for entry in found] == [True, True, False]


def test_start_that_was_filled_in_at_completion_is_no_start_event() -> None:
    recorder = Recorder()
    both = {"time_discovered_started_ns": 9, "time_discovered_completed_ns": 9}
    recorder.collective("0", 1, **both)
    recorder.collective("0", 2, state="scheduled")

    assert told(recorder).collectives[-1]["started"] is None


@pytest.mark.parametrize("at_ns", [16, BASE_NS - 1])
def test_start_before_the_call_is_damage_and_no_start_event(at_ns: int) -> None:
    recorder = Recorder()
    recorder.collective("0", 1, time_discovered_started_ns=at_ns)
    recorder.collective("0", 2, state="scheduled", time_discovered_started_ns=at_ns)

    assert told(recorder).collectives[-1]["started"] is None


def test_start_of_a_call_that_the_recorder_calls_scheduled_is_no_start_event() -> None:
    recorder = Recorder("gloo")
    recorder.collective("0", 1, time_discovered_started_ns=BASE_NS + 5)
    recorder.collective("0", 2, state="scheduled")

    assert [one["started"] for one in told(recorder).collectives] == [None, None]


def test_coalesced_collectives_are_one_call_whose_end_tells_its_state() -> None:
    recorder = Recorder()
    recorder.collective("0", 4)
    for size in (3, 4):
        recorder.member("0", 5, "all_reduce", input_sizes=[[size]])
    recorder.collective("0", 5, "coalesced", input_sizes=[], input_dtypes=[])
    recorder.collective("0", 6, state="scheduled")

    found = told(recorder).collectives

    assert seqs(found) == [4, 5, 6]
    assert (found[1]["op"], found[1]["input_sizes"]) == ("all_reduce", [[3], [4]])
    assert found[1]["retired"]


def test_open_coalescing_region_is_still_pending() -> None:
    recorder = Recorder()
    recorder.collective("0", 4)
    recorder.member("0", 5, "all_reduce")
    recorder.member("0", 5, "all_gather")

    found = told(recorder).collectives[-1]

    assert (found["seq"], found["retired"], found["op"]) == (5, False, dump.MIXED)


def test_region_that_the_ring_cut_in_half_is_left_out() -> None:
    recorder = Recorder(size=4, first_id=900)
    for _ in range(3):
        recorder.member("0", 5, "all_reduce")
    recorder.collective("0", 5, "coalesced", input_sizes=[])
    recorder.collective("0", 6)

    assert seqs(told(recorder).collectives) == [6]


def test_sends_have_numbers_of_their_own_and_are_no_collectives() -> None:
    recorder = Recorder()
    recorder.collective("0", 900)
    recorder.p2p("0", 1, "send", 0, 1)
    recorder.p2p("0", 2, "recv", 0, 3, state="scheduled")

    found = told(recorder)

    assert seqs(found.collectives) == [900]
    assert [(one["op"], one["peer"], one["retired"]) for one in found.p2p] == [
        ("send", 1, True),
        ("recv", 3, False),
    ]


def test_members_of_a_batch_end_with_the_batch() -> None:
    recorder = Recorder()
    for number, state in ((1, "completed"), (2, "scheduled")):
        recorder.p2p("0", number, "send", 0, 1, state="member")
        recorder.p2p("0", number, "recv", 0, 1, state="member")
        recorder.batch_end("0", number, state=state)

    found = told(recorder).p2p

    assert [(one["op"], one["retired"]) for one in found] == [
        ("send", True),
        ("recv", True),
        ("send", False),
        ("recv", False),
    ]


def test_batches_that_use_up_collective_numbers_are_noticed() -> None:
    """torch before 2.6: only ranks that batch sends would count on, so numbers drift apart."""
    recorder = Recorder()
    recorder.collective("0", 4)
    recorder.p2p("0", 0, "send", 0, 1, state="member")
    recorder.entries[-1]["collective_seq_id"] = 5
    recorder.batch_end("0", 0, is_p2p=False, collective_seq_id=5)

    found = told(recorder)

    assert found.counts_batches
    assert [one["retired"] for one in found.p2p] == [True]


def test_earlier_group_of_the_same_name_is_not_mixed_in() -> None:
    recorder = Recorder()
    for seq in (1, 2, 3):
        recorder.collective("0", seq, pg_id=0)
    recorder.collective("0", 1, pg_id=4, state="scheduled")

    assert seqs(told(recorder).collectives) == [1]


def test_groups_that_are_not_asked_for_cost_no_place() -> None:
    recorder = Recorder()
    for seq in range(1, 40):
        recorder.collective("0", seq)
        recorder.collective("9", seq)

    assert seqs(told(recorder, limit=8).collectives) == list(range(32, 40))


def test_missing_fields_are_no_trouble() -> None:
    answer = b'{"entries":[{"collective_seq_id":3,"process_group":["0"]}],"version":"3.0"}'

    (found,) = dump.Dump(dump.newest_first(answer), ["0"], 8).groups["0"].collectives

    assert (found["seq"], found["op"], found["retired"]) == (3, "", False)


def test_newest_call_may_list_very_many_tensors() -> None:
    recorder = Recorder("nccl")
    recorder.collective("0", 1)
    recorder.collective("0", 2, "all_gather", output_sizes=[[4096, 4096]] * 9000)

    assert seqs(told(recorder).collectives) == [1, 2]


def test_peer_that_is_no_rank_is_passed_over() -> None:
    recorder = Recorder("nccl")
    recorder.p2p("0", 1, "send", 0, int("9" * 40))

    assert told(recorder).p2p == []
