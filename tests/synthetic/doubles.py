"""Two faults at once, each of which holds somebody up: both must be named."""

from __future__ import annotations

from random import Random

from tests.synthetic.jobs import Job
from tests.synthetic.plights import ALONE, ASLEEP
from tests.synthetic.scenery import STEPS, Unfit, draw
from tests.synthetic.single_faults import MISSING_OR_UNMATCHED, stopped


def double(seed: int) -> Job:
    """Two ranks stop, each in a plight of its own; neither waits for the other."""
    rng = Random(f"double/{seed}")
    scene = draw(rng, least=4)
    first, second = rng.sample(range(scene.mesh.size), 2)
    scene.stops[first] = scene.any_place(first)
    step = len(scene.programs[first]) // STEPS
    near = range(max(0, scene.stops[first] - step), scene.stops[first] + step)
    scene.stops[second] = rng.choice(near)
    names = []
    for rank in (first, second):
        name = rng.choice(sorted(ALONE))
        names.append(name)
        scene.plights[rank] = ALONE[name](rng)
    job = stopped(scene, " + ".join(sorted(names)), seed, MISSING_OR_UNMATCHED, {first, second})
    if any(_seems_to_wait(job, rank) for rank in (first, second)):
        raise Unfit("nothing tells it from a rank that waits for the other one")
    return job


def _seems_to_wait(job: Job, rank: int) -> bool:
    """Whether this rank has begun a call that is not over, and nobody has seen where it stands."""
    plight = job.plights[rank]
    is_unseen = plight.activity is None and plight.process == ASLEEP
    return is_unseen and bool(job.machine.courses[rank].pending)


def make(seed: int) -> Job:
    """The first draw from `seed` on that carries two faults."""
    for attempt in range(200):
        try:
            return double(seed * 1000 + attempt)
        except Unfit:
            continue
    raise Unfit(f"no double fault from seed {seed}")
