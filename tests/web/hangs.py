"""Hand-made incidents of the states and sizes that their page must show, hostile ones included."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import timedelta

from tests.web import causes, making, scenes

from hangwatch_server import model, ranges

NODES = 8


def everything() -> scenes.Scene:
    """The causes, and an incident of each other state and size."""
    scene = causes.everything()
    for add in (_stalled, _node_lost, _p2p, _many, _hundreds, _long_cycle, _causes, _hostile):
        add(scene)
    _ends(scene)
    return scene


def _verdict(name: str, summary: str, size: int, **changes: object) -> model.Verdict:
    values: dict[str, object] = {
        "kind": model.Kind.MISSING_RANKS,
        "confidence": 0.93,
        "stalled_s": 41.0,
        "world_size": size,
        "summary": summary,
        "group": model.GroupRef(id="77aa", name="default_pg", ranks=f"0-{size - 1}"),
        "seq": 311,
        "op": "all_reduce",
        "incident": f"inc-{name}",
    }
    return making.verdict(f"h-{name}"[:12], name, model.State.HUNG, **{**values, **changes})


def _add(scene: scenes.Scene, said: model.Verdict, **changes: object) -> None:
    size = said.coverage.world_size
    guilty = set(ranges.parse(said.culprit_ranks)) if said.culprit_ranks else set()
    rows = tuple(
        making.rank(rank, "culprit" if rank in guilty else "waiting") for rank in range(size)
    )
    scene.add(making.job(said), rows)
    scene.incidents.append(making.incident(said, **changes))


def _culprits(ranks: Sequence[int], **changes: object) -> tuple[model.Culprit, ...]:
    return tuple(
        model.Culprit(
            **{  # type: ignore[arg-type]
                "rank": rank,
                "node": making.node_name(rank // 4),
                "pid": 800 + rank,
                "gpu": rank % 4,
                "condition": model.Condition.IN_USER_CODE,
                "where": f"augment.py:{40 + rank} in crop",
                **changes,
            }
        )
        for rank in ranks
    )


def _stalled(scene: scenes.Scene) -> None:
    said = _verdict(
        "stalled",
        "All 32 ranks entered all_gather #311 of the default group and none finishes; they have "
        "waited 41 s. On this evidence no rank is to blame.",
        32,
        kind=model.Kind.STALLED_COLLECTIVE,
        op="all_gather",
        waiting="0-31",
        edges=(model.WaitEdge(ranks="0-31", call="default group all_gather #311", missing=""),),
        evidence=(
            model.Evidence(kind="counters", text="32 ranks (0-31) are inside all_gather #311."),
        ),
        hints=("All ranks are inside: suspect the network. Set NCCL_DEBUG=INFO.",),
    )
    _add(scene, said)


def _node_lost(scene: scenes.Scene) -> None:
    said = _verdict(
        "node-gone",
        "Ranks 8-15 (node-c, node-d) are on nodes that are not heard any more; 24 ranks have "
        "waited 41 s in all_reduce #311 of the default group.",
        32,
        culprits=_culprits(
            range(8, 16),
            condition=model.Condition.NODE_LOST,
            where="",
            detail="its node has been silent for 33 s",
        ),
        culprit_ranks="8-15",
        waiting="0-7,16-31",
        edges=(
            model.WaitEdge(ranks="0-7,16-31", call="default group all_reduce #311", missing="8-15"),
        ),
        coverage=model.Coverage(reporting=24, world_size=32, silent="8-15"),
        evidence=(model.Evidence(kind="node", text="node-c and node-d are silent for 33 s."),),
        action=model.Action(advice="restart_excluding", exclude_nodes=("node-c", "node-d")),
    )
    _add(scene, said)


def _p2p(scene: scenes.Scene) -> None:
    said = _verdict(
        "pipeline-recv",
        "Rank 2 (node-a, pid 802) waits in recv from rank 1 (tag 7), which never sends; 3 ranks "
        "have waited 41 s.",
        4,
        kind=model.Kind.UNMATCHED_P2P,
        op="recv",
        seq=None,
        culprits=_culprits((1,), where="stage.py:31 in forward"),
        culprit_ranks="1",
        waiting="0,2-3",
        path=(
            model.PathStep(rank=3, waits_in="pp recv from 2 (tag 7)", for_=(2,)),
            model.PathStep(rank=2, waits_in="pp recv from 1 (tag 7)", for_=(1,)),
            model.PathStep(rank=1, waits_in="is in its own code: stage.py:31 in forward", for_=()),
        ),
        edges=(
            model.WaitEdge(ranks="2", call="pp recv from 1 (tag 7)", missing="1"),
            model.WaitEdge(ranks="3", call="pp recv from 2 (tag 7)", missing="2"),
        ),
        evidence=(
            model.Evidence(kind="call", text="Rank 2 has posted recv 41 from rank 1, 40 sent."),
        ),
        hints=("Check that sends and receives pair up: same peer, group, tag and count.",),
    )
    _add(scene, said)


def _many(scene: scenes.Scene) -> None:
    ranks = range(3, 43, 4)
    said = _verdict(
        "ten-culprits",
        "Ranks 3,7,… never entered all_reduce #311 of the default group; 54 ranks have waited "
        "41 s.",
        64,
        culprits=_culprits(ranks),
        culprit_ranks=ranges.text(ranks),
        waiting=ranges.text(set(range(64)) - set(ranks)),
    )
    _add(scene, said, state=model.IncidentState.CONFIRMED, acknowledged_by="ada")


def _hundreds(scene: scenes.Scene) -> None:
    said = _verdict(
        "three-hundred",
        "300 ranks (0-299) never entered all_reduce #311 of the default group; 212 ranks have "
        "waited 41 s.",
        512,
        culprits=_culprits(range(64), where="augment.py:44 in crop"),
        culprit_ranks="0-299",
        waiting="300-511",
    )
    _add(scene, said, snoozed_until=making.NOW + timedelta(days=30), is_snoozed_to_end=True)


def _long_cycle(scene: scenes.Scene) -> None:
    size = 20
    steps = tuple(
        model.PathStep(rank=rank, waits_in=f"pp-{rank} recv #9", for_=((rank + 1) % size,))
        for rank in range(size)
    )
    said = _verdict(
        "long-cycle",
        "Ranks 0-19 wait for each other in a ring of receives; 20 ranks have waited 41 s.",
        size,
        kind=model.Kind.DEADLOCK,
        culprits=_culprits(range(size), condition=model.Condition.IN_COLLECTIVE),
        culprit_ranks="0-19",
        cycle=steps,
        path=steps,
    )
    _add(scene, said)


def _causes(scene: scenes.Scene) -> None:
    said = _verdict(
        "three-causes",
        "Rank 2 (node-a, pid 802) never entered all_reduce #41 of tp-0; 3 ranks have waited 41 s. "
        "Apart from that, ranks 6 and 9 hold others up too.",
        12,
        culprits=(
            *_culprits((2,)),
            *_culprits((6,), condition=model.Condition.STOPPED, where=""),
            *_culprits((9,), condition=model.Condition.GIL_HELD, where="native.py:7 in call"),
        ),
        culprit_ranks="2,6,9",
        waiting="0-1,3-5,7-8,10-11",
        causes=tuple(
            model.Cause(
                kind=model.Kind.MISSING_RANKS,
                summary=f"Rank {rank} never entered all_reduce #41 of {group}; 3 ranks have "
                "waited 40 s.",
                culprit_ranks=str(rank),
                waiting=waiting,
            )
            for rank, group, waiting in ((6, "tp-1", "4-5,7"), (9, "tp-2", "8,10-11"))
        ),
        evidence=(
            model.Evidence(kind="cause", text="Apart from that: Rank 6 never entered."),
            model.Evidence(kind="cause", text="Apart from that: Rank 9 never entered."),
        ),
    )
    _add(scene, said)


def _hostile(scene: scenes.Scene) -> None:
    bad = scenes.HOSTILE
    said = _verdict(
        "hostile-all",
        bad,
        8,
        kind=model.Kind.DEADLOCK,
        culprits=_culprits((0, 1), node=bad, where=bad, detail=bad),
        culprit_ranks="0-1",
        waiting="2-7",
        cycle=(
            model.PathStep(rank=0, waits_in=bad, for_=(1,)),
            model.PathStep(rank=1, waits_in=bad, for_=(0,)),
        ),
        path=(model.PathStep(rank=2, waits_in=bad, for_=(0,)),),
        edges=(model.WaitEdge(ranks="2-7", call=bad, missing="0", where=bad),),
        sides=(
            model.MismatchSide(ranks="0", call=bad, where=bad, is_odd=False),
            model.MismatchSide(ranks="1", call="barrier", where=bad, is_odd=True),
        ),
        evidence=(model.Evidence(kind="call", text=bad),),
        hints=(bad,),
    )
    note = model.Comment(at=making.NOW, by=bad[:90], text=bad[:2000])
    _add(scene, said, comments=(note,))


def _ends(scene: scenes.Scene) -> None:
    said = _verdict(
        "bare-record",
        "Rank 3 never entered all_reduce #311 of the default group; 7 ranks have waited 41 s.",
        8,
        culprits=_culprits((3,)),
        culprit_ranks="3",
        waiting="0-2,4-7",
    )
    for name, state, reason in (
        ("ended", model.IncidentState.ENDED, "job failed"),
        ("restarted", model.IncidentState.ENDED, "restarted"),
        ("resolved", model.IncidentState.RESOLVED, "progress"),
    ):
        scene.incidents.append(
            making.incident(
                dataclasses.replace(said, incident=f"inc-{name}"),
                state=state,
                ended_at=making.NOW - timedelta(seconds=60),
                end_reason=reason,
            )
        )
