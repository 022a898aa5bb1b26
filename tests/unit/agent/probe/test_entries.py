"""When dumps are taken, and what is kept of one."""

from __future__ import annotations

import json

from hangwatch_agent.probe import entries

S = 1_000_000_000


def dump(*seqs: int) -> bytes:
    listed = [
        {"collective_seq_id": seq, "process_group": ["0", "default_pg"], "op_id": seq}
        for seq in seqs
    ]
    whole = {"comm_lib_version": "", "entries": listed, "pg_status": {}, "version": "2.10"}
    return json.dumps(whole, separators=(",", ":")).encode()


def test_newest_entries_come_first() -> None:
    found = [entry["collective_seq_id"] for entry in entries.newest_first(dump(1, 2, 3))]

    assert found == [3, 2, 1]


def test_spaced_json_of_another_torch_is_read_whole() -> None:
    answer = json.dumps(json.loads(dump(1, 2)), indent=1).encode()

    assert [entry["op_id"] for entry in entries.newest_first(answer)] == [2, 1]


def test_dump_without_entries_gives_none() -> None:
    assert list(entries.newest_first(b'{"pg_config":{},"version":"2.10"}')) == []


def test_gloo_entry_loses_its_prefix_and_claims_no_start() -> None:
    raw = {
        "collective_seq_id": 6,
        "profiling_name": "gloo:all_reduce",
        "state": "scheduled",
        "retired": False,
        "input_sizes": [[8]],
        "record_id": 5,
    }

    found = entries.trimmed(raw)

    assert (found["op"], found["seq"], found["retired"]) == ("all_reduce", 6, False)
    assert found["started"] is None


def test_nccl_states_are_read() -> None:
    started = entries.trimmed({"state": "started", "profiling_name": "nccl:all_gather"})
    completed = entries.trimmed({"state": "completed", "retired": False})

    assert (started["started"], started["retired"]) == (True, False)
    assert completed["retired"] is True


def test_dumps_come_at_two_and_four_seconds_then_every_ten() -> None:
    pace = entries.Pace()
    times = [half * S // 2 for half in range(1, 60)]

    taken = [now / S for now in times if pace.is_due(0, now)]

    assert taken == [2.0, 4.0, 14.0, 24.0]


def test_each_stall_starts_anew_and_movement_costs_no_dump() -> None:
    pace = entries.Pace()
    assert pace.is_due(0, 2 * S)

    moving = [pace.is_due(now, now + S) for now in range(3 * S, 9 * S, S)]

    assert moving == [False] * 6
    assert pace.is_due(9 * S, 11 * S)
