"""Text of NCCL RAS before 2.28.7: who is listed, and who is left over."""

from __future__ import annotations

import pytest
from tests.support.fake_ras import TEXT_2_24, TEXT_2_27

from hangwatch_agent.errors import RasError
from hangwatch_agent.ras import status, text
from hangwatch_agent.wire import RasState


def members(data: bytes) -> dict[int, status.Member]:
    (found,) = text.parse(data).communicators
    return {member.rank: member for member in found.members}


def test_minority_is_read_by_name_and_the_rest_has_the_majority_s_count() -> None:
    found = members(TEXT_2_24)

    assert len(found) == 32
    assert {rank for rank, item in found.items() if item.counts == {"collective": 6649}} == {
        0, 2, 3, 4, 5, 7,
    }  # fmt: skip
    assert found[1].counts == {"collective": 6650}
    assert (found[7].pid, found[7].host, found[7].gpu) == (483079, "172.16.64.210", 3)


def test_missing_rank_does_not_answer_and_has_no_count() -> None:
    missing = members(TEXT_2_24)[21]

    assert missing.state is RasState.UNRESPONSIVE
    assert missing.counts == {}


def test_version_and_timeouts_are_read() -> None:
    found = text.parse(TEXT_2_24)

    assert (found.version, found.timeouts, found.is_text) == ("2.24.3", 2, True)


def test_counts_are_kept_apart_per_op() -> None:
    found = members(TEXT_2_27)

    assert found[3].counts == {"all_reduce": 29, "broadcast": 5}
    assert found[0].counts == {"all_reduce": 30, "broadcast": 0}
    assert found[1].counts == {"all_reduce": 30, "broadcast": 5}


def test_state_and_error_of_single_ranks_are_read() -> None:
    found = members(TEXT_2_27)

    assert found[2].state is RasState.FINALIZE
    assert found[1].error == "Remote process error"
    assert found[1].pid == 801


def test_answer_that_ended_early_is_refused() -> None:
    with pytest.raises(RasError):
        text.parse(TEXT_2_24[: TEXT_2_24.index(b"Warnings")])
    with pytest.raises(RasError):
        text.parse(b"SSH-2.0-OpenSSH_9.2\r\n")


def test_two_classes_of_which_neither_is_listed_leave_the_counts_open() -> None:
    single = b" -- GPU 3 managed by process 803 on node 10.0.0.1"
    data = TEXT_2_27.replace(
        b"  3 ranks have launched up to operation 30\n"
        b"  Rank 3 has launched up to operation 29" + single,
        b"  2 ranks have launched up to operation 30\n  2 ranks have launched up to operation 29",
    )

    assert all("all_reduce" not in item.counts for item in members(data).values())


def spoken_of(sections: str, sizes: str) -> bytes:
    return f"NCCL version 2.26\n{sizes}{sections}\nWarnings\n".encode()


def test_few_lines_cannot_speak_of_millions_of_members() -> None:
    counts = "  Communicator ranks have different AllReduce operation counts\n"
    sizes = "".join(f"  {item} 1 1 1 65536 65536 RUNNING OK\n" for item in range(50))
    sections = "".join(f"#{item}-0 ({item:x}) MISMATCH\n{counts}  5 ranks have launched up to "
                       "operation 3\n" for item in range(50))  # fmt: skip

    found = text.parse(spoken_of(sections, sizes))

    assert sum(len(item.members) for item in found.communicators) == 65_536
    assert found.omitted == 49 * 65_536


def test_made_up_kinds_of_ops_end_somewhere() -> None:
    counts = "".join(
        f"  Communicator ranks have different Op{number} operation counts\n"
        "  2 ranks have launched up to operation 3\n"
        for number in range(500)
    )

    found = members(spoken_of(f"#0-0 (0) MISMATCH\n{counts}", "  0 1 1 1 2 2 RUNNING OK\n"))

    assert len(found[0].counts) == text.MAX_TOPICS
