"""One fault in a job of ten thousands of ranks, for measuring how diagnosis grows with the job."""

from __future__ import annotations

from random import Random

from tests.synthetic.jobs import Job, Truth
from tests.synthetic.plights import OUTSIDE

from hangwatch_server.model import Kind
from hangwatch_server.simulate.machine import Machine
from hangwatch_server.simulate.meshes import Mesh, build_large
from hangwatch_server.simulate.programs import Call, Program
from hangwatch_server.simulate.telemetry import Shape

CULPRIT_SHARE = 0.37  # anywhere but at an end
STEPS = 4


def stopped(size: int, shape: Shape = Shape.GLOO) -> Job:
    """One rank is stuck in its dataloader in the second step; the wait has spread from there."""
    mesh = build_large(size)
    programs = [_step(mesh, rank) * STEPS for rank in range(size)]
    culprit = int(size * CULPRIT_SHARE)
    stops = {culprit: len(programs[culprit]) // STEPS + 1}
    machine = Machine(mesh, programs, stops=stops)
    machine.run()
    return Job(
        fault="dataloader",
        mesh=mesh,
        programs=programs,
        machine=machine,
        shape=shape,
        truth=Truth(frozenset({Kind.MISSING_RANKS}), frozenset({culprit}), frozenset({culprit})),
        plights={culprit: OUTSIDE["dataloader"](Random(size))},
        stack_share=0.01,
    )


def _step(mesh: Mesh, rank: int) -> Program:
    """Neighbours call their pair in the order of the ring; its first rank breaks the ring."""
    mine = mesh.of_rank[rank]
    pairs = ["previous", "next"] if rank >= 4 else ["next", "previous"]
    return [Call(mine[axis]) for axis in ("tp", "ep", "dp", *pairs)]
