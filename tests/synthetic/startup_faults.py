"""Faults before training: init_process_group and new_group calls that wait for ranks in vain."""

from __future__ import annotations

from random import Random

from tests.synthetic.jobs import Job, Truth
from tests.synthetic.plights import ALONE, ASLEEP, OUTSIDE, Plight
from tests.synthetic.scenery import Scene, Unfit, draw
from tests.synthetic.single_faults import Maker

from hangwatch_agent import wire
from hangwatch_server.model import Condition, Kind, Link
from hangwatch_server.simulate.machine import Machine

RENDEZVOUS = frozenset({Kind.INCOMPLETE_RENDEZVOUS})
_OUTSIDE_STARTUP = ("dataloader", "user_code", "lock", "stopped", "uninterruptible", "killed")


def init_rank_elsewhere(seed: int) -> Job:
    """One rank's process is there, alive or dead, but never comes to init_process_group."""
    rng = Random(f"init elsewhere/{seed}")
    scene = draw(rng)
    rank = scene.any_rank()
    plight = ALONE[rng.choice(_OUTSIDE_STARTUP)](rng)
    return _waiting(scene, "init_rank_elsewhere", seed, "init_process_group", {rank}, plight)


def init_process_absent(seed: int) -> Job:
    """No process of some ranks was ever started."""
    rng = Random(f"init absent/{seed}")
    scene = draw(rng)
    first = scene.any_rank()
    ranks = set(range(first, min(first + rng.choice((1, 1, 2)), scene.mesh.size)))
    if len(ranks) == scene.mesh.size:
        raise Unfit("nobody is left to wait")
    plight = Plight(link=Link.LOST, is_reported=False)
    return _waiting(scene, "init_process_absent", seed, "init_process_group", ranks, plight)


def new_group_missing(seed: int) -> Job:
    """One rank left init_process_group and does not come to the new_group that all must call."""
    rng = Random(f"new group/{seed}")
    scene = draw(rng)
    rank = scene.any_rank()
    plight = OUTSIDE[rng.choice(sorted(OUTSIDE))](rng)
    return _waiting(scene, "new_group_missing", seed, "new_group", {rank}, plight)


def _waiting(scene: Scene, name: str, seed: int, what: str, ranks: set[int], plight: Plight) -> Job:
    """All ranks but these are inside `what`; no rank has made a call yet."""
    size = scene.mesh.size
    scene.programs = [[] for _ in range(size)]
    for rank in range(size):
        wait = wire.InitWait(
            what=what,
            age_s=scene.rng.uniform(11.0, 40.0),
            expected=size,
            detail="env://",
            rank=rank,
        )
        is_new = what == "init_process_group"
        scene.plights[rank] = Plight(process=ASLEEP, waits=(wait,), is_new=is_new)
    for rank in ranks:
        scene.plights[rank] = plight
    conditions = dict.fromkeys(ranks, frozenset({*plight.conditions, Condition.UNKNOWN}))
    machine = Machine(scene.mesh, scene.programs)
    truth = Truth(RENDEZVOUS, frozenset(ranks), frozenset(ranks), conditions)
    job = scene.job(name, machine, truth, seed)
    job.uninitialised = frozenset(ranks) if what == "init_process_group" else frozenset()
    return job


MAKERS: dict[str, Maker] = {
    "init_rank_elsewhere": init_rank_elsewhere,
    "init_process_absent": init_process_absent,
    "new_group_missing": new_group_missing,
}
