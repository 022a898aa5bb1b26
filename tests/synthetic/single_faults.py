"""Faults of one rank that stops making calls, of its node, of its GPU, and of the network.

Each function edits a scene and returns what is right to say of it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.synthetic.jobs import Job, Truth
from tests.synthetic.plights import ALONE, ASLEEP, Plight
from tests.synthetic.scenery import MIDDLE, SMALL, Scene, Unfit, draw

from hangwatch_agent import wire
from hangwatch_server.model import Condition, Kind, Link
from hangwatch_server.simulate.machine import Machine
from hangwatch_server.simulate.programs import BLOCKING_COLLECTIVES
from hangwatch_server.simulate.telemetry import Shape

MISSING = frozenset({Kind.MISSING_RANKS})
# A rank that others wait for in a receive is as well said to be missing as to owe its send.
MISSING_OR_UNMATCHED = frozenset({Kind.MISSING_RANKS, Kind.UNMATCHED_P2P})
Maker = Callable[[int], Job]


def alone(name: str) -> Maker:
    """One rank in the plight of this name makes no further call."""

    def make(seed: int) -> Job:
        rng = Random(f"{name}/{seed}")
        scene = draw(rng)
        rank = scene.any_rank()
        scene.stops[rank] = scene.any_place(rank)
        scene.plights[rank] = ALONE[name](rng)
        return stopped(scene, name, seed, MISSING_OR_UNMATCHED, {rank})

    return make


def stopped(scene: Scene, name: str, seed: int, kinds: frozenset[Kind], culprits: set[int]) -> Job:
    """Run the scene; all culprits must have come to their stop, and somebody must wait for each."""
    machine = scene.run()
    check_reached(scene, machine, culprits)
    conditions = {rank: scene.plights[rank].conditions for rank in culprits}
    truth = Truth(kinds, frozenset(culprits), frozenset(culprits), conditions)
    return scene.job(name, machine, truth, seed)


def check_reached(scene: Scene, machine: Machine, culprits: set[int]) -> None:
    """Raise Unfit where a culprit waits itself, or nobody waits for it."""
    waited = {missing for rank in range(scene.mesh.size) for missing in machine.waits_for(rank)}
    for rank in culprits:
        if machine.courses[rank].is_inside or rank not in waited:
            raise Unfit(f"rank {rank} holds nobody up")


def node_lost(seed: int) -> Job:
    """A machine is gone with all its ranks; its agent is silent too."""
    rng = Random(f"node_lost/{seed}")
    scene = draw(rng, least=4, styles=("plain", "sharded", "rooted", "overlapped"))
    node = rng.randrange(scene.mesh.node_of(scene.mesh.size - 1) + 1)
    culprits = set(scene.mesh.on_node(node))
    place = scene.any_place(min(culprits))
    lost = Plight(conditions=frozenset({Condition.NODE_LOST}), link=Link.LOST)
    for rank in culprits:
        scene.stops[rank] = place
        scene.plights[rank] = lost
    machine = scene.run()
    truth = Truth(
        MISSING,
        frozenset(r for r in culprits if _is_waited_for(machine, r, scene.mesh.size)),
        frozenset(culprits),
        dict.fromkeys(culprits, lost.conditions),
    )
    if not truth.culprits:
        raise Unfit("nobody waits for the lost node")
    job = scene.job("node_lost", machine, truth, seed)
    job.stall_s = rng.uniform(25.0, 60.0)
    job.idle_s = job.stall_s
    return job


def _is_waited_for(machine: Machine, rank: int, size: int) -> bool:
    return any(rank in machine.waits_for(other) for other in range(size))


def gpu_queued(seed: int) -> Job:
    """The GPU of one rank is stuck before a collective that its CPU has issued; events tell."""
    return _queued("gpu_queued", seed, Shape.NCCL_TIMED)


def gpu_queued_untimed(seed: int) -> Job:
    """The same without start events: every rank has entered, and nothing tells who is behind."""
    return _queued("gpu_queued_untimed", seed, Shape.NCCL)


def _queued(name: str, seed: int, shape: Shape) -> Job:
    rng = Random(f"{name}/{seed}")
    scene = draw(rng, styles=BLOCKING_COLLECTIVES, shapes=(shape,))
    rank = scene.any_rank()
    scene.stops[rank] = scene.any_place(rank)
    scene.queued.add(rank)
    busy = frozenset({Condition.GPU_BUSY, Condition.UNKNOWN, Condition.IN_COLLECTIVE})
    scene.plights[rank] = Plight(process=ASLEEP, conditions=busy)
    machine = scene.run()
    check_reached(scene, machine, {rank})
    # Without events nobody is to be blamed; who blames the right one all the same is not wrong.
    named = frozenset({rank}) if shape is Shape.NCCL_TIMED else frozenset[int]()
    kinds = frozenset({Kind.STALLED_COLLECTIVE, Kind.MISSING_RANKS})
    truth = Truth(kinds, named, frozenset({rank}), {rank: busy} if named else {})
    return scene.job(name, machine, truth, seed)


def stalled_collective(seed: int) -> Job:
    """All members are in a collective that never finishes: the network's fault, nobody's."""
    rng = Random(f"stalled/{seed}")
    scene = draw(rng, styles=("plain", "sharded"))
    rank = scene.any_rank()
    call = scene.programs[rank][scene.any_place(rank)]
    scene.broken.add((call.gid, rng.randint(1, 3)))
    machine = scene.run()
    truth = Truth(frozenset({Kind.STALLED_COLLECTIVE}), frozenset(), frozenset())
    return scene.job("stalled_collective", machine, truth, seed)


def restarted(seed: int) -> Job:
    """One rank's process came back alone: it waits to be let in, the others wait for its call."""
    rng = Random(f"restarted/{seed}")
    scene = draw(rng, styles=BLOCKING_COLLECTIVES)
    rank = scene.any_rank()
    scene.stops[rank] = scene.any_place(rank)
    wait = wire.InitWait(
        what="init_process_group", age_s=9.0, expected=scene.mesh.size, detail="env://", rank=rank
    )
    any_condition = frozenset(Condition)
    scene.plights[rank] = Plight(conditions=any_condition, waits=(wait,), is_new=True)
    kinds = frozenset({Kind.MISSING_RANKS, Kind.INCOMPLETE_RENDEZVOUS, Kind.DEADLOCK})
    return stopped(scene, "restarted", seed, kinds, {rank})


def cascade(seed: int) -> Job:
    """One rank stops in a larger mesh with pipeline stages: most others wait somewhere else."""
    rng = Random(f"cascade/{seed}")
    sizes = [size for size in (*SMALL, *MIDDLE) if size[2] > 1]
    scene = draw(rng, styles=("pipelined",), sizes=sizes)
    rank = scene.any_rank()
    scene.stops[rank] = scene.any_place(rank)
    scene.plights[rank] = ALONE[rng.choice(sorted(ALONE))](rng)
    return stopped(scene, "cascade", seed, MISSING_OR_UNMATCHED, {rank})


MAKERS: dict[str, Maker] = {
    **{name: alone(name) for name in ALONE},
    "node_lost": node_lost,
    "gpu_queued": gpu_queued,
    "gpu_queued_untimed": gpu_queued_untimed,
    "stalled_collective": stalled_collective,
    "restarted": restarted,
    "cascade": cascade,
}
