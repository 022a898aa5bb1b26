"""Draws the job that a fault is put into: its mesh, its programs, the shape of its telemetry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.synthetic.jobs import Job, Truth
from tests.synthetic.plights import Plight

from hangwatch_server.simulate import programs
from hangwatch_server.simulate.machine import Key, Machine
from hangwatch_server.simulate.meshes import Mesh, build
from hangwatch_server.simulate.programs import Program
from hangwatch_server.simulate.telemetry import Shape

STEPS = 5
SMALL = ((2, 1, 1), (2, 2, 1), (1, 4, 1), (4, 2, 1), (2, 2, 2), (3, 2, 2), (1, 8, 1), (2, 4, 2))
MIDDLE = ((4, 4, 2), (2, 8, 4), (8, 8, 1), (4, 8, 4), (8, 16, 2), (4, 16, 8))
# The backend issues sends and receives, and asynchronous calls, in ways that only gloo shows.
OF_NCCL = ("plain", "sharded", "rooted")


class Unfit(Exception):
    """This draw cannot carry the fault: draw another job."""


@dataclass(slots=True)
class Scene:
    """A job that has not run yet; a fault edits it."""

    rng: Random
    mesh: Mesh
    style: str
    programs: list[Program]
    shape: Shape
    stops: dict[int, int] = field(default_factory=dict)
    plights: dict[int, Plight] = field(default_factory=dict)
    queued: set[int] = field(default_factory=set)
    broken: set[Key] = field(default_factory=set)

    def any_rank(self) -> int:
        return self.rng.randrange(self.mesh.size)

    def any_place(self, rank: int) -> int:
        """A call of `rank`, early enough that others come to need it."""
        step = len(self.programs[rank]) // STEPS
        return self.rng.randrange(0, 3 * step)

    def edit(self, rank: int, calls: Sequence[programs.Call]) -> None:
        self.programs[rank] = list(calls)

    def run(self) -> Machine:
        machine = Machine(self.mesh, self.programs, stops=self.stops, broken=self.broken)
        machine.run()
        return machine

    def job(self, fault: str, machine: Machine, truth: Truth, seed: int) -> Job:
        stall_s = self.rng.uniform(11.0, 60.0)
        return Job(
            fault=fault,
            mesh=self.mesh,
            programs=self.programs,
            machine=machine,
            shape=self.shape,
            truth=truth,
            plights=self.plights,
            queued=frozenset(self.queued),
            broken=frozenset(self.broken),
            stall_s=stall_s,
            idle_s=stall_s + self.rng.uniform(0.0, 2.0),
            stack_share=self.rng.choice((0.0, 0.1, 1.0)),
            seed=seed,
        )


def draw(
    rng: Random,
    *,
    styles: Sequence[str] = tuple(programs.STYLES),
    shapes: Sequence[Shape] = tuple(Shape),
    sizes: Sequence[tuple[int, int, int]] = (*SMALL, *MIDDLE),
    least: int = 2,
    are_described: bool | None = None,
) -> Scene:
    """A scene of one of these styles, shapes and sizes, with at least `least` ranks."""
    fit = [size for size in sizes if size[0] * size[1] * size[2] >= least]
    size = rng.choice(fit)
    style = rng.choice(list(styles))
    fitting = [s for s in shapes if s is Shape.GLOO or style in OF_NCCL]
    if not fitting:
        raise Unfit(f"{style} has no shape among {shapes}")
    number = size[0] * size[1] * size[2]
    mesh = build(
        *size,
        ranks_per_node=rng.choice([n for n in (1, 2, 4, 8) if n <= max(1, number // 2)]),
        are_described=rng.random() < 0.7 if are_described is None else are_described,
    )
    return Scene(rng, mesh, style, programs.write(mesh, style, STEPS), rng.choice(fitting))
