"""Hand-made moments of incidents: lanes of last calls, facts of processes and GPUs, node signs."""

from __future__ import annotations

from datetime import timedelta

from tests.web import making

from hangwatch_agent import wire
from hangwatch_server import model


def by_incident() -> dict[str, model.Moment]:
    """What is stored beside the incidents of the scenes."""
    return {
        "inc-hung": of_hung(),
        "inc-mismatch": of_mismatch(),
        "inc-stalled": of_stalled(),
        "inc-pipeline-recv": of_pipeline(),
    }


def moment(**changes: object) -> model.Moment:
    values: dict[str, object] = {
        "at": making.NOW - timedelta(seconds=237),
        "why": "confirmed",
        "groups": (making.group("dp-1", "1,3,5,7", op="all_reduce", behind="5", waiting="1,3,7"),),
        "groups_total": 12,
        "ranks": (),
        "lanes": (),
        "nodes": (),
        "nodes_total": 2,
    }
    return model.Moment(**{**values, **changes})  # type: ignore[arg-type]


def lane(
    group: str, ranks: str, last: int, *, inside: int = 0, ops: tuple[str, ...] = ("all_reduce",)
) -> model.Lane:
    """`last` is the newest finished call, `inside` how many more are entered."""
    calls = tuple(
        model.LaneCall(
            seq=number,
            op=ops[number % len(ops)],
            shape="[6553600] float" if ops[number % len(ops)] != "barrier" else "",
            is_finished=number <= last,
        )
        for number in range(last - 18, last + inside + 1)
    )
    return model.Lane(
        gid=f"gid-{group}", group=group, ranks=ranks, calls=calls, entered=last + inside
    )


def of_pipeline() -> model.Moment:
    """Rank 2 of four waits for the 41st message of rank 1, who has sent 40."""

    def pair(sender: int, sent: int, received: int, *calls: model.OpenCall) -> model.Pair:
        return model.Pair(
            group="pp",
            sender=sender,
            receiver=sender + 1,
            sends=model.PairSide(posted=sent, finished=sent),
            receives=model.PairSide(posted=received, finished=received - len(calls)),
            calls=calls,
        )

    def recv(rank: int) -> model.OpenCall:
        return model.OpenCall(
            rank=rank,
            is_send=False,
            number=41,
            tag=7,
            waits_s=41.0,
            is_blocking=True,
            site="stage.py:31 in forward",
        )

    return moment(
        groups=(making.group("pp", "0-3"),),
        pairs=(pair(1, 40, 41, recv(2)), pair(2, 40, 41, recv(3)), pair(0, 41, 41)),
    )


def facts(rank: int, **changes: object) -> model.RankFacts:
    values: dict[str, object] = {
        "rank": rank,
        "node": making.node_name(rank // 4),
        "link": model.Link.LIVE,
        "age_s": 0.4,
        "depth": wire.Depth.PROBE,
        "pid": 800 + rank,
        "step": 1042,
        "phase": "",
        "process": process(state="S", wchan="futex_wait", main_cpu_share=0.0),
        "gpu": None,
    }
    return model.RankFacts(**{**values, **changes})  # type: ignore[arg-type]


def process(**changes: object) -> model.RankProcess:
    values: dict[str, object] = {
        "state": "S",
        "wchan": "",
        "cpu_s": 812.4,
        "main_cpu_share": 0.0,
        "main_still_s": None,
        "main_delay_share": None,
        "io_bytes": None,
        "threads": 0,
        "exit_code": None,
        "exit_signal": None,
        "exit_reason": "",
        "is_unresponsive": False,
        "is_gil_held": False,
        "children": (),
    }
    return model.RankProcess(**{**values, **changes})  # type: ignore[arg-type]


def child(**changes: object) -> model.RankChild:
    values: dict[str, object] = {"cpu_share": 0.0, "parent": 0, "wchan": ""}
    return model.RankChild(**{**values, **changes})  # type: ignore[arg-type]


def gpu(index: int = 1, **changes: object) -> model.RankGpu:
    values: dict[str, object] = {
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "utilisation": 0.0,
        "power_w": 118.0,
        "power_limit_w": 700.0,
        "memory_used_bytes": 61 * 1024**3,
        "memory_total_bytes": 80 * 1024**3,
        "temperature_c": 38.0,
        "uuid": "",
        "ecc_errors": None,
        "xid": (),
        "throttle": (),
    }
    return model.RankGpu(**{**values, **changes})  # type: ignore[arg-type]


def of_hung() -> model.Moment:
    stuck = process(
        state="S",
        wchan="pipe_read",
        main_cpu_share=0.0,
        main_still_s=248.0,
        threads=41,
        children=(
            child(pid=831, name="python", role="loader", state="D", wchan="nfs4_wait"),
            child(pid=832, name="python", role="loader", state="S", wchan="pipe_read"),
        ),
    )
    pair = ("all_reduce", "all_gather")
    return moment(
        ranks=(facts(5, process=stuck, gpu=gpu()), facts(0), facts(1)),
        lanes=(
            lane("dp-1", "5", 1041, ops=pair),
            lane("dp-1", "1,3,7", 1041, inside=1, ops=pair),
            lane("tp-0", "1", 9310),
            lane("tp-0", "0", 9310, inside=1),
        ),
    )


def of_mismatch() -> model.Moment:
    first = lane("world", "0", 28, inside=1)
    last = model.LaneCall(seq=29, op="barrier", shape="", is_finished=False)
    other = model.Lane(
        gid="gid-world", group="world", ranks="1", calls=(*first.calls[:-1], last), entered=29
    )
    return moment(lanes=(first, other), ranks=(facts(0), facts(1)))


def of_stalled() -> model.Moment:
    worst = model.NodeSigns(
        node="node-c",
        ranks="8-11",
        signs=(
            "GPU 2 raised Xid 74: an NVLink error",
            "GPU 2 holds its clocks down: hw_thermal_slowdown",
        ),
    )
    late = model.NodeSigns(node="node-f", ranks="20-23", signs=("its agent is late",))
    return moment(
        lanes=(lane("default_pg", "0-31", 310, inside=1, ops=("all_gather",)),),
        nodes=(worst, late),
        nodes_total=8,
    )
