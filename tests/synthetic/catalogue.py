"""Every fault by name, and jobs drawn from it: the same seed always gives the same job."""

from __future__ import annotations

from collections.abc import Mapping

from tests.synthetic import call_faults, doubles, healthy, single_faults, startup_faults
from tests.synthetic.jobs import Job
from tests.synthetic.scenery import Unfit
from tests.synthetic.single_faults import Maker

SINGLE: Mapping[str, Maker] = {
    **single_faults.MAKERS,
    **call_faults.MAKERS,
    **startup_faults.MAKERS,
}
HEALTHY: Mapping[str, Maker] = healthy.MAKERS
_TRIES = 400


def single(name: str, seed: int) -> Job:
    """A job with this fault and no other."""
    return _draw(SINGLE[name], seed)


def nth_single(seed: int) -> Job:
    """Goes through all faults in turn as `seed` counts up."""
    names = sorted(SINGLE)
    return single(names[seed % len(names)], seed)


def double(seed: int) -> Job:
    """A job with two faults that have nothing to do with each other."""
    return doubles.make(seed)


def healthy_job(name: str, seed: int) -> Job:
    """A job of this sort in which nothing is wrong."""
    return _draw(HEALTHY[name], seed)


def nth_healthy(seed: int) -> Job:
    names = sorted(HEALTHY)
    return healthy_job(names[seed % len(names)], seed)


def _draw(make: Maker, seed: int) -> Job:
    """The first draw that can carry the fault."""
    for attempt in range(_TRIES):
        try:
            return make(seed * _TRIES + attempt)
        except Unfit:
            continue
    raise Unfit(f"no job from seed {seed} in {_TRIES} draws")
