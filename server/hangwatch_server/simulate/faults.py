"""What goes wrong in a made-up job: each fault edits the calls of a mesh and says what is true."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from hangwatch_server.model import Kind
from hangwatch_server.simulate import meshes, programs
from hangwatch_server.simulate.machine import Machine
from hangwatch_server.simulate.meshes import WORLD, Mesh
from hangwatch_server.simulate.programs import Call, Program

STYLE = "sharded"
STEPS = 3  # what a recorder still knows; the fault befalls the last one
MOST_TENSOR, MOST_PIPE = 8, 8
RING = 4


class Fault(StrEnum):
    """What befalls the job."""

    HEALTHY = "healthy"
    DATALOADER = "dataloader"
    KILLED = "killed"
    MISMATCH = "mismatch"
    DEADLOCK = "deadlock"
    NODE_LOST = "node-lost"


WORDS = {
    Fault.HEALTHY: "nothing is wrong",
    Fault.DATALOADER: "one rank waits for a batch that never comes",
    Fault.KILLED: "the process of one rank is killed",
    Fault.MISMATCH: "one rank makes another call than its group",
    Fault.DEADLOCK: "some ranks wait for each other in a ring of groups",
    Fault.NODE_LOST: "a machine is gone with all its ranks",
}


@dataclass(slots=True)
class Scene:
    """A job's mesh and the calls of its last steps; `stops` is what a rank never comes to."""

    fault: Fault
    mesh: Mesh
    programs: list[Program]
    kind: Kind = Kind.NONE
    culprits: tuple[int, ...] = ()
    stops: dict[int, int] = field(default_factory=dict)

    @property
    def culprit(self) -> int:
        """The rank that a fault of one rank befalls: neither the first nor on the first node."""
        return 5 * self.mesh.size // 8

    def last_step(self, rank: int) -> int:
        """The place of the last step's first call."""
        return (STEPS - 1) * len(self.programs[rank]) // STEPS

    def run(self) -> Machine:
        machine = Machine(self.mesh, self.programs, stops=self.stops)
        machine.run()
        return machine


def scene(fault: Fault, ranks: int, nodes: int) -> Scene:
    """A job of so many ranks over so many nodes; `nodes` divides `ranks`."""
    mesh = meshes.build(*shape(ranks), ranks_per_node=ranks // nodes)
    made = Scene(fault, mesh, programs.write(mesh, STYLE, STEPS))
    _EDITS[fault](made)
    return made


def shape(ranks: int) -> tuple[int, int, int]:
    """Widths of tensor, data and pipeline groups, as a job of this size would be laid out."""
    tensor = math.gcd(ranks, MOST_TENSOR) if ranks >= 2 * MOST_TENSOR else math.gcd(ranks, 2)
    left = ranks // tensor
    pipe = math.gcd(left, MOST_PIPE) if left >= 4 * MOST_PIPE else math.gcd(left, 2)
    pipe = pipe if left >= 2 * pipe else 1
    return tensor, left // pipe, pipe


def _nothing(_made: Scene) -> None:
    """The job goes on."""


def _one_stops(made: Scene) -> None:
    _stop(made, (made.culprit,))


def _node_stops(made: Scene) -> None:
    _stop(made, tuple(made.mesh.on_node(made.mesh.node_of(made.culprit))))


def _stop(made: Scene, culprits: tuple[int, ...]) -> None:
    made.kind, made.culprits = Kind.MISSING_RANKS, culprits
    made.stops = {rank: made.last_step(rank) for rank in culprits}


def _one_differs(made: Scene) -> None:
    """In its data group, or in the world where that one is too small to have a majority."""
    rank = made.culprit
    own = made.mesh.of_rank[rank]
    has_majority = "dp" in own and len(made.mesh.members(own["dp"])) > 2
    gid = own["dp"] if has_majority else WORLD
    calls = made.programs[rank]
    first = made.last_step(rank)
    place = next(at for at in range(first, len(calls)) if calls[at].gid == gid)
    made.programs[rank] = [*calls]
    made.programs[rank][place] = calls[place]._replace(size=calls[place].size // 2 + 7)
    made.kind, made.culprits = Kind.MISMATCH, (rank,)


def _ring(made: Scene) -> None:
    """Each calls the group with its next neighbour before that with the other: queued crosswise."""
    number = min(RING, made.mesh.size)
    apart = made.mesh.size // number
    ranks = tuple(place * apart for place in range(number))
    pairs = meshes.add_ring(made.mesh, ranks)
    for place, rank in enumerate(ranks):
        at = made.last_step(rank)
        calls = made.programs[rank]
        crossed = [Call(pairs[place].gid), Call(pairs[place - 1].gid)]
        made.programs[rank] = [*calls[:at], *crossed, *calls[at:]]
    made.kind, made.culprits = Kind.DEADLOCK, ranks


_EDITS: dict[Fault, Callable[[Scene], None]] = {
    Fault.HEALTHY: _nothing,
    Fault.DATALOADER: _one_stops,
    Fault.KILLED: _one_stops,
    Fault.MISMATCH: _one_differs,
    Fault.DEADLOCK: _ring,
    Fault.NODE_LOST: _node_stops,
}
