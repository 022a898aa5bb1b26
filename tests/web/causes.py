"""Hand-made jobs for what a verdict can hold: shifts, depths, GPU errors, stragglers, restarts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.web import making, scenes

from hangwatch_agent import wire
from hangwatch_server import model, ranges

LONG_WHY = (
    "3 x p99 (0.4 s) of 212 gaps in training is under the 10 s floor; put off to 45 s: 2 frozen "
    "pauses of up to 30 s ended by themselves; cut so that evidence is stored 60 s before the "
    "group's timeout of 120 s; no counters: 12 samples in a row look stuck, 9 make a hang; at most "
    "33% of a working job's look so (by 40 samples of it at work), so chance gives such a run less "
    "than once in 1,000,000 times"
)
SKIPPED = "Rank 2 skipped one all_reduce 10 calls ago, at skipped_metric.py:19 in step."
WORLD = model.GroupRef(id="77aa", name="default_pg", ranks="0-7")


def everything() -> scenes.Scene:
    """The busy day of `scenes`, and one job of each cause."""
    scene = scenes.everything()
    for add in (_shift, _bare, _all_inside, _ras, _gpu, _slow, _restarts, _double, _ring, _left):
        add(scene)
    return scene


def _culprit(rank: int, condition: model.Condition, where: str, detail: str = "") -> model.Culprit:
    return model.Culprit(
        rank=rank,
        node=making.node_name(rank // 4),
        pid=800 + rank,
        gpu=rank % 4,
        condition=condition,
        where=where,
        detail=detail,
    )


def _told(kind: str, text: str) -> model.Evidence:
    return model.Evidence(kind=kind, text=text)


def _add(
    scene: scenes.Scene,
    number: int,
    name: str,
    state: model.State,
    summary: str,
    culprits: Sequence[model.Culprit] = (),
    *,
    depth: wire.Depth = wire.Depth.PROBE,
    **changes: object,
) -> None:
    """A job of eight ranks in this state; an open incident too where it hangs."""
    guilty = [culprit.rank for culprit in culprits]
    values: dict[str, object] = {
        "kind": model.Kind.MISSING_RANKS,
        "confidence": 0.93,
        "stalled_s": 41.0,
        "summary": summary,
        "culprits": tuple(culprits),
        "culprit_ranks": ranges.text(guilty),
        "waiting": ranges.text(set(range(8)) - set(guilty)),
        "incident": f"inc-{name}" if state is model.State.HUNG else None,
    }
    said = making.verdict(f"c{number:011x}", name, state, **{**values, **changes})
    rows = tuple(
        making.rank(rank, "culprit" if rank in guilty else "waiting", depth=depth)
        for rank in range(8)
    )
    scene.add(making.job(said, depth=depth), rows)
    if said.incident:
        scene.incidents.append(making.incident(said))


def _shift(scene: scenes.Scene) -> None:
    _add(
        scene,
        1,
        "skip-late",
        model.State.HUNG,
        "Rank 2 (node-a, pid 802) disagrees with the rest at call #29 of the default group; "
        f"8 ranks have waited 41 s. {SKIPPED}",
        [_culprit(2, model.Condition.IN_COLLECTIVE, "skipped_metric.py:39 in main")],
        kind=model.Kind.MISMATCH,
        group=WORLD,
        seq=29,
        op="all_reduce",
        sides=(
            model.MismatchSide(
                ranks="0-1,3-7", call="all_reduce [1024] float", where="step.py:26", is_odd=False
            ),
            model.MismatchSide(
                ranks="2", call="barrier", where="skipped_metric.py:39 in main", is_odd=True
            ),
        ),
        evidence=(_told("counters", "8 ranks (0-7) are inside call #29."), _told("calls", SKIPPED)),
        hints=("Compare the two call sites: ranks took different branches.",),
    )


def _bare(scene: scenes.Scene) -> None:
    _add(
        scene,
        2,
        "plain-torchrun",
        model.State.HUNG,
        "Rank 1 (node-a, pid 801) is not inside all_reduce, and the others are; 7 ranks have "
        "waited 41 s. It waits for a lock or queue: lock_held.py:24 in main (thread 'Thread-1 "
        "(refresh_cache)' seems to hold it at lock_held.py:17 in refresh_cache).",
        [
            _culprit(
                1,
                model.Condition.IN_LOCK,
                "lock_held.py:24 in main",
                "thread 'Thread-1 (refresh_cache)' seems to hold it at lock_held.py:17",
            )
        ],
        depth=wire.Depth.BARE,
        confidence=0.75,
        op="all_reduce",
        edges=(model.WaitEdge(ranks="0,2-7", call="all_reduce", missing="1"),),
        evidence=(
            _told(
                "stack",
                "7 ranks (0,2-7) are inside all_reduce. Where they stand: all_reduce at "
                "lock_held.py:31 in main (0,2-7). No rank has a probe, so this is known from "
                "stacks alone: not which group or which call each waits in. Start the job with "
                "`hangwatch run` for certainty.",
            ),
        ),
        limits=model.Limits(suspect_after_s=10, confirm_after_s=45, why=LONG_WHY),
    )


def _all_inside(scene: scenes.Scene) -> None:
    _add(
        scene,
        3,
        "plain-inside",
        model.State.HUNG,
        "Every rank that can be seen waits inside a collective and none goes on: all_reduce at "
        "train.py:61 in step (0-5), barrier at train.py:70 in step (6-7); 8 ranks have waited "
        "41 s. Stacks alone do not tell who is to blame.",
        depth=wire.Depth.BARE,
        kind=model.Kind.STALLED_COLLECTIVE,
        confidence=0.5,
        op="all_reduce",
    )


def _ras(scene: scenes.Scene) -> None:
    _add(
        scene,
        4,
        "nccl-ras",
        model.State.HUNG,
        "Rank 7 (node-b, pid 807) never entered all_reduce #120 of an unknown group; 7 ranks have "
        "waited 41 s. It is in its own code: train.py:88 in log.",
        [_culprit(7, model.Condition.IN_USER_CODE, "train.py:88 in log")],
        depth=wire.Depth.RAS,
        confidence=0.8,
        op="all_reduce",
        seq=120,
        evidence=(
            _told(
                "ras",
                "NCCL RAS on communicator 8f1c22aa, the same in 3 answers: ranks 0-6 have launched "
                "120 calls; rank 7 has launched 119 calls. It counts launches only, so this is "
                "less sure than a probe's word.",
            ),
        ),
    )


def _gpu(scene: scenes.Scene) -> None:
    _add(
        scene,
        5,
        "fallen-gpu",
        model.State.HUNG,
        "Rank 5 (node-b, pid 805) entered all_reduce #88 of dp-1 and holds it up; 7 ranks have "
        "waited 41 s. It is at train.py:61 in step (GPU 1 raised Xid 79: it has fallen off the "
        "bus).",
        [
            _culprit(
                5,
                model.Condition.UNKNOWN,
                "train.py:61 in step",
                "GPU 1 raised Xid 79: it has fallen off the bus",
            )
        ],
        kind=model.Kind.STALLED_COLLECTIVE,
        op="all_reduce",
        seq=88,
        edges=(model.WaitEdge(ranks="0-7", call="dp-1 all_reduce #88", missing="5"),),
        evidence=(_told("gpu", "GPU 1 of rank 5 raised Xid 79: it has fallen off the bus."),),
        action=model.Action(advice="restart_excluding", exclude_nodes=("node-b",)),
    )


def _slow(scene: scenes.Scene) -> None:
    _add(
        scene,
        6,
        "straggler",
        model.State.SLOW,
        "Rank 3 (node-a, pid 803) never entered all_reduce #512 of dp-0; 7 ranks have waited 41 s. "
        "It is in its own code: augment.py:44 in crop.",
        [_culprit(3, model.Condition.IN_USER_CODE, "augment.py:44 in crop")],
        evidence=(
            _told(
                "straggler",
                "Rank 3 arrived last in 41 of the last 60 waits of dp-0, usually 2.4 s after "
                "the others.",
            ),
        ),
        limits=model.Limits(suspect_after_s=10, confirm_after_s=45, why=LONG_WHY),
    )


def _restarts(scene: scenes.Scene) -> None:
    _add(
        scene,
        7,
        "again-and-again",
        model.State.HUNG,
        "Rank 3 (node-a, pid 803) never entered all_reduce #88 of the default group; 7 ranks have "
        "waited 41 s. It is in its dataloader: train.py:88 in __getitem__.",
        [_culprit(3, model.Condition.IN_DATALOADER, "train.py:88 in __getitem__")],
        attempt=4,
        evidence=(
            _told(
                "restarts",
                "Attempts 2 and 3 stood still at the same place (rank 3, all_reduce of the "
                "default group, train.py:88 in __getitem__): a restart alone has not helped.",
            ),
            _told(
                "restarts",
                "Attempts 1, 2 and 3 came no further than 88 calls, this one is at 87: the job "
                "restarts without progress.",
            ),
        ),
    )


def _double(scene: scenes.Scene) -> None:
    other = (
        "Rank 6 (node-b, pid 806) never entered all_reduce #41 of tp-1; 3 ranks have waited 40 s. "
        "It is stopped (SIGSTOP or a debugger)."
    )
    _add(
        scene,
        8,
        "two-causes",
        model.State.HUNG,
        "Rank 2 (node-a, pid 802) never entered all_reduce #41 of tp-0; 3 ranks have waited 41 s. "
        "It is in its dataloader: train.py:88 in __getitem__. Apart from that, rank 6 holds others "
        "up too.",
        [
            _culprit(2, model.Condition.IN_DATALOADER, "train.py:88 in __getitem__"),
            _culprit(6, model.Condition.STOPPED, ""),
        ],
        op="all_reduce",
        seq=41,
        edges=(model.WaitEdge(ranks="0-1,3", call="tp-0 all_reduce #41", missing="2"),),
        evidence=(_told("cause", f"Apart from that: {other}"),),
        causes=(
            model.Cause(
                kind=model.Kind.MISSING_RANKS, summary=other, culprit_ranks="6", waiting="4-5,7"
            ),
        ),
    )


def _ring(scene: scenes.Scene) -> None:
    calls = ("tensor-parallel-0 all_reduce #11", "pipeline-1 all_gather #7", "data-2 barrier #3")
    steps = tuple(
        model.PathStep(rank=rank, waits_in=call, for_=((rank + 1) % 3,))
        for rank, call in enumerate(calls)
    )
    _add(
        scene,
        9,
        "order-three",
        model.State.HUNG,
        "Ranks 0-2 wait for each other in a cycle that includes all_reduce #11 of "
        "tensor-parallel-0; 8 ranks have waited 41 s.",
        [
            _culprit(rank, model.Condition.IN_COLLECTIVE, f"order.py:{20 + rank} in step")
            for rank in range(3)
        ],
        kind=model.Kind.DEADLOCK,
        cycle=steps,
        path=steps,
        evidence=(
            _told(
                "calls",
                "Rank 1 has made one call fewer on its tensor group than the ranks that wait in "
                "the same call.",
            ),
        ),
    )


def _left(scene: scenes.Scene) -> None:
    _add(
        scene,
        10,
        "half-heard",
        model.State.UNKNOWN,
        "Rank 5 (node-b, pid 805) is not known to have entered all_reduce #88 of the default "
        "group; 3 ranks have waited 41 s. It is on a node that is not heard any more (its node "
        "has been silent for 33 s).",
        [_culprit(5, model.Condition.NODE_LOST, "", "its node has been silent for 33 s")],
        confidence=0.41,
        coverage=model.Coverage(reporting=4, world_size=8, silent="4-7"),
        evidence=(
            _told("node", "Rank 5 is not heard at this time."),
            _told("node", "Ranks 4-7 are silent: nobody can say whether they arrived."),
            _told("state", "Unknown: node node-b is waited for and not heard."),
        ),
    )
