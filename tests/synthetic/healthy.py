"""Jobs in which nothing is wrong, looked at in the middle of it: nobody may be accused.

Reports are not of one moment: each rank's is up to a second old, so that ranks seem to be behind.
"""

from __future__ import annotations

from random import Random

from tests.synthetic.jobs import Job, Truth
from tests.synthetic.plights import OUTSIDE, Plight
from tests.synthetic.scenery import Scene, draw
from tests.synthetic.single_faults import Maker

from hangwatch_server.model import Kind, Link
from hangwatch_server.simulate.machine import Machine

NOTHING = Truth(frozenset({Kind.NONE, Kind.NO_PROGRESS}), frozenset(), frozenset())


def mid_flight(seed: int) -> Job:
    """Ranks compute and communicate; no call is older than a second."""
    rng = Random(f"mid flight/{seed}")
    job = _cut(draw(rng), "mid_flight", seed)
    job.stall_s = rng.uniform(0.1, 1.2)
    job.idle_s = job.stall_s + rng.uniform(0.0, 2.0)
    return job


def slow_step(seed: int) -> Job:
    """All wait a few seconds for one rank that computes: everyday, and under every limit."""
    rng = Random(f"slow step/{seed}")
    scene = draw(rng)
    rank = scene.any_rank()
    scene.stops[rank] = scene.any_place(rank)
    scene.plights[rank] = OUTSIDE["user_code"](rng)
    machine = scene.run()
    job = scene.job("slow_step", machine, NOTHING, seed)
    job.stall_s = job.idle_s = rng.uniform(1.0, 6.5)
    return job


def agent_lost(seed: int) -> Job:
    """Training goes on, but one node's agent is not heard: its ranks are not seen, not hung."""
    rng = Random(f"agent lost/{seed}")
    scene = draw(rng, least=4)
    job = _cut(scene, "agent_lost", seed)
    node = rng.randrange(scene.mesh.node_of(scene.mesh.size - 1) + 1)
    for rank in scene.mesh.on_node(node):
        job.plights[rank] = Plight(link=Link.LOST)
    job.lost_s = 30.0
    job.stall_s = rng.uniform(0.1, 0.9)
    job.idle_s = job.stall_s
    return job


def evaluation(seed: int) -> Job:
    """No rank is in a call: all of them evaluate for a while."""
    rng = Random(f"evaluation/{seed}")
    scene = draw(rng)
    machine = scene.run()
    job = scene.job("evaluation", machine, NOTHING, seed)
    for rank in range(scene.mesh.size):
        job.plights[rank] = OUTSIDE["user_code"](rng)
    job.stall_s = job.idle_s = rng.uniform(3.0, 25.0)
    return job


def _cut(scene: Scene, name: str, seed: int) -> Job:
    """Look at the job at any moment of its course, and again a little later."""
    order = list(range(scene.mesh.size))
    scene.rng.shuffle(order)
    turns = scene.rng.randrange(1, 4 * scene.mesh.size + 2)
    more = scene.rng.randrange(3 * scene.mesh.size, 5 * scene.mesh.size)
    first, second = (Machine(scene.mesh, scene.programs) for _ in range(2))
    first.run(order, turns)
    second.run(order, turns + more)
    job = scene.job(name, first, NOTHING, seed)
    job.later = second
    return job


MAKERS: dict[str, Maker] = {
    "mid_flight": mid_flight,
    "slow_step": slow_step,
    "agent_lost": agent_lost,
    "evaluation": evaluation,
}
