"""What a well-formed frame may say of NCCL RAS and GPUs, and what closes the connection."""

from __future__ import annotations

import msgspec
import pytest

from hangwatch_agent import wire
from hangwatch_agent.wire import RasCommunicator, RasMember, RasReport, RasState, WireError
from hangwatch_server.ingest import bounds

GOOD = RasMember(0, 0, 5, 0, RasState.RUNNING, (1,))


def answer(member: RasMember = GOOD, **changes: object) -> RasReport:
    item = RasCommunicator(hash="a", size=1, ops=("all_reduce",), members=(member,))
    report = RasReport(
        launch="job", number=1, age_s=0.0, hosts=("10.0.0.1",), communicators=(item,)
    )
    return msgspec.structs.replace(report, **changes)


def check(report: RasReport) -> None:
    arrive(wire.Heartbeat(number=1, launches=(), ranks=(), ras=(report,)))


def arrive(frame: wire.Heartbeat | wire.CapturePart) -> None:
    """What the door does with a frame."""
    read = wire.decode_from_agent(wire.encode(frame))
    if isinstance(read, wire.Heartbeat):
        bounds.check_heartbeat(read)
    elif isinstance(read, wire.CapturePart):
        bounds.check_part(read)


def test_ordinary_answer_passes() -> None:
    check(answer())


@pytest.mark.parametrize(
    "report",
    [
        answer(GOOD.__class__(1, 0, 5, 0, RasState.RUNNING, (1,))),
        answer(GOOD.__class__(0, 1, 5, 0, RasState.RUNNING, (1,))),
        answer(GOOD.__class__(0, -2, 5, 0, RasState.RUNNING, (1,))),
        answer(GOOD.__class__(0, 0, 5, 0, RasState.RUNNING, (1, 2))),
        answer(GOOD.__class__(0, 0, 5, 0, RasState.RUNNING, (-1,))),
        answer(GOOD.__class__(0, 0, 5, 0, RasState.RUNNING, (1,), "x" * 5000)),
        answer(age_s=float("nan")),
        answer(age_s=float("inf")),
        answer(version="x" * 5000),
        answer(communicators=(RasCommunicator(hash="a", size=10**9),)),
        answer(communicators=(RasCommunicator(hash="a", size=-1),)),
        answer(communicators=(RasCommunicator(hash="a", size=1),) * 5000),
    ],
)
def test_answer_that_contradicts_itself_or_is_too_large_is_refused(report: RasReport) -> None:
    with pytest.raises(WireError):
        check(report)


@pytest.mark.parametrize(
    "gpu",
    [
        wire.GpuFacts(index=0, utilisation=float("nan")),
        wire.GpuFacts(index=0, power_w=float("inf")),
        wire.GpuFacts(index=0, xid=(79,) * 1000),
        wire.GpuFacts(index=0, name="x" * 5000),
    ],
)
def test_gpu_that_cannot_be_is_refused(gpu: wire.GpuFacts) -> None:
    rank = wire.RankBeat(
        launch="job", rank=0, local_rank=0, world_size=1, pid=1, start_ticks=1,
        process=wire.ProcessFacts(state="S"), gpu=gpu,
    )  # fmt: skip

    with pytest.raises(WireError):
        arrive(wire.Heartbeat(number=1, launches=(), ranks=(rank,)))


@pytest.mark.parametrize(
    "changes",
    [
        {"process": wire.ProcessFacts(state="S", main_still_s=float("nan"))},
        {"process": wire.ProcessFacts(state="S", exit_reason="x" * 5000)},
        {"entries": (wire.GroupEntries(
            gid="a", entries=(wire.Entry(seq=1, op="x", is_retired=True),) * 65),)},
    ],
)  # fmt: skip
def test_part_over_a_limit_is_refused(changes: dict[str, object]) -> None:
    part = wire.CapturePart(capture="c", launch="job", rank=0, pid=1, age_s=0.0)
    arrive(part)

    with pytest.raises(WireError):
        arrive(msgspec.structs.replace(part, **changes))


def group(ranks: str) -> wire.GroupInfo:
    return wire.GroupInfo(gid="a", launch="k", name="", description="", backend="", ranks=ranks)


def test_very_many_large_groups_are_checked_without_listing_their_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds.ranges, "parse", lambda spec: pytest.fail("it lists the ranks"))

    bounds.check_ranges([group(f"0-{wire.MAX_WORLD_SIZE - 1}")] * 30_000)


@pytest.mark.parametrize("ranks", ["", "x", "5-2", "0-9:0", "1,262144", "0-262144", "0-999999,1-9"])
def test_rank_set_that_cannot_be_is_refused(ranks: str) -> None:
    with pytest.raises(WireError):
        bounds.check_ranges([group(ranks)])
