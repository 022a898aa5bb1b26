"""JSON of NCCL RAS: 2.28 to 2.30, its known mistake, and what is no answer at all."""

from __future__ import annotations

import pytest
from tests.support.fake_ras import FakeRank, communicator, status_json

from hangwatch_agent import wire
from hangwatch_agent.errors import RasError
from hangwatch_agent.ras import answer, status
from hangwatch_agent.wire import RasState

RUNNING = FakeRank(rank=0, pid=1524344, counts=(1, 0, 2, 0, 30))
MISSING = FakeRank(rank=1, pid=1524345, gpu=1, is_unresponsive=True)


def members(data: bytes) -> list[status.Member]:
    (found,) = answer.parse(data).communicators
    return found.members


def test_counts_and_states_of_each_member_are_read() -> None:
    found = members(status_json(communicator([RUNNING], [MISSING])))

    assert [member.state for member in found] == [RasState.RUNNING, RasState.UNRESPONSIVE]
    assert found[0].counts["all_reduce"] == 30
    assert found[0].counts["reduce_scatter"] == 0
    assert (found[1].pid, found[1].gpu) == (1524345, 1)


def test_missing_comma_of_2_28_is_mended() -> None:
    data = status_json(communicator([RUNNING], [MISSING]), version="2.28.9", has_comma=False)
    assert b',\n          "status": {\n            "unresp' not in data

    assert [member.state for member in members(data)] == [RasState.RUNNING, RasState.UNRESPONSIVE]


@pytest.mark.parametrize(
    ("rank", "state"),
    [
        (FakeRank(rank=0, pid=1, is_finalizing=True), RasState.FINALIZE),
        (FakeRank(rank=0, pid=1, init_state=7), RasState.INIT),
    ],
)
def test_flags_give_the_state(rank: FakeRank, state: RasState) -> None:
    assert members(status_json(communicator([rank])))[0].state is state


@pytest.mark.parametrize(
    ("rank", "state"),
    [
        (FakeRank(rank=0, pid=1, is_dead=True, is_unresponsive=True), RasState.DEAD),
        (FakeRank(rank=0, pid=1), RasState.LEFT),
    ],
)
def test_reachable_process_that_knows_the_communicator_no_more_has_left_it(
    rank: FakeRank, state: RasState
) -> None:
    assert members(status_json(communicator([], [rank])))[0].state is state


def test_asynchronous_error_is_told_in_words() -> None:
    rank = FakeRank(rank=0, pid=1, async_error=6)

    assert members(status_json(communicator([rank])))[0].error == "remote process error"


WHOLE = status_json(communicator([RUNNING], [MISSING]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null",
        WHOLE[: len(WHOLE) // 2],
        WHOLE.replace(b"1524344", b"9" * 400),
        WHOLE.replace(b'"AllReduce": 30', b'"AllReduce": -1'),
        WHOLE.replace(b"10.0.0.1", b"\xff\xfe"),
        b"[" * 100_000,
    ],
    ids=["empty", "no list", "null", "cut", "huge pid", "negative", "no text", "deep"],
)
def test_what_is_no_whole_answer_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(RasError):
        answer.parse(data)


def test_members_that_cannot_be_are_left_out() -> None:
    strange = [FakeRank(rank=9, pid=1), FakeRank(rank=-3, pid=2), FakeRank(rank=0, pid=3)]

    assert [member.pid for member in members(status_json(communicator(strange)))] == [3]


def test_report_names_each_host_once_and_keeps_the_order_of_ops() -> None:
    ranks = [FakeRank(rank=rank, pid=rank + 1, counts=(0, 0, 0, 0, rank)) for rank in range(3)]
    found = answer.parse(status_json(communicator(ranks)))

    report = status.report(found, "job", 1, 0.5)

    (only,) = report.communicators
    assert report.hosts == ("10.0.0.1",)
    assert only.ops[-1] == "all_reduce"
    assert [member.counts[-1] for member in only.members] == [0, 1, 2]
    frame = wire.Heartbeat(number=1, launches=(), ranks=(), ras=(report,))
    assert wire.decode_from_agent(wire.encode(frame)) == frame


def test_communicators_beyond_the_limit_are_counted_and_those_that_differ_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "MAX_RAS_MEMBERS", 3)
    same = [FakeRank(rank=rank, pid=rank + 1) for rank in range(2)]
    other = [FakeRank(rank=0, pid=1), FakeRank(rank=1, pid=2, counts=(0, 0, 0, 0, 1))]
    found = answer.parse(status_json(communicator(same, hash="a"), communicator(other, hash="b")))

    report = status.report(found, "job", 1, 0.0)

    assert [item.hash[0] for item in report.communicators] == ["b"]
    assert report.omitted == 2


def test_communicator_that_no_server_takes_is_left_out() -> None:
    data = (
        b'{"communicators": [{"hash": "0x1", "size": 300000, "ranks": [{"rank": 0}]},'
        b' {"hash": "0x2", "size": 1, "ranks": [{"rank": 0}]}]}'
    )

    report = status.report(answer.parse(data), "job", 1, 0.0)

    assert [item.hash for item in report.communicators] == ["2"]
    assert report.omitted == 1


def test_answer_that_would_fill_the_memory_is_not_read() -> None:
    data = b'{"communicators": [{"ranks": [' + b'{"rank":0},' * 1_200_000 + b"]}]}"

    with pytest.raises(RasError, match="holds too much"):
        answer.parse(data)
