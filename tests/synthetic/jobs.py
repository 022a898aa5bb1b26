"""A synthetic job with its truth, and the snapshots that a server would have of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from tests.synthetic.plights import Plight, silences_probe, stack

from hangwatch_agent import wire
from hangwatch_server.model import (
    Activity,
    Condition,
    GroupView,
    Kind,
    Link,
    RankView,
    Snapshot,
    StackFacts,
)
from hangwatch_server.simulate import telemetry
from hangwatch_server.simulate.machine import Key, Machine
from hangwatch_server.simulate.meshes import Mesh
from hangwatch_server.simulate.programs import P2P, WAIT, Program
from hangwatch_server.simulate.telemetry import Place, Ring, Shape

LAUNCH = "synthetic"
APART_S = 2.2  # between the two snapshots of a pair


@dataclass(frozen=True, slots=True)
class Truth:
    """What is right to say. `culprits` are whom a right answer names, no more and no fewer.

    `allowed` widens that where telemetry cannot tell apart who is wrong: any set between `culprits`
    and `allowed` is right. Ranks that nothing tells of (a lost node's) are in both.
    """

    kinds: frozenset[Kind]
    culprits: frozenset[int]
    allowed: frozenset[int]
    conditions: Mapping[int, frozenset[Condition]] = field(default_factory=dict)


@dataclass(slots=True)
class Job:
    """A job that ran until nobody could move (or, when healthy, until it was looked at)."""

    fault: str
    mesh: Mesh
    programs: list[Program]
    machine: Machine
    shape: Shape
    truth: Truth
    plights: dict[int, Plight] = field(default_factory=dict)
    queued: frozenset[int] = frozenset()  # their GPU stopped, not their CPU
    broken: frozenset[Key] = frozenset()
    stall_s: float = 14.0
    idle_s: float = 14.0  # of groups in which the rank waits for nothing
    stack_share: float = 0.1  # of the waiting ranks
    uninitialised: frozenset[int] = frozenset()  # never came out of init_process_group
    later: Machine | None = None  # where a job that moves is at the second look
    lost_s: float | None = None  # how long lost nodes are silent; None: since all stood still
    seed: int = 0

    def place(self, rank: int) -> Place:
        return telemetry.place_of(self.machine, rank, self.shape, is_queued=rank in self.queued)


def snapshot(
    job: Job, *, later_s: float = 0.0, rings: Mapping[int, Ring] | None = None
) -> Snapshot:
    """The job as seen `later_s` after it was first looked at."""
    rng = Random(job.seed)
    kept = rings or {}
    ranks = {
        rank: _view(job, rank, kept.get(rank, Ring()), later_s, rng)
        for rank in range(job.mesh.size)
    }
    return Snapshot(
        job="synthetic",
        attempt=1,
        world_size=job.mesh.size,
        ranks=ranks,
        groups=groups(job.mesh),
        taken_s=500.0 + later_s,
        age_s=400.0 + later_s,
    )


def pair(job: Job, *, rings: Mapping[int, Ring] | None = None) -> tuple[Snapshot, Snapshot]:
    """Two snapshots, far enough apart to be two samples."""
    if job.later is None:
        return snapshot(job, rings=rings), snapshot(job, later_s=APART_S, rings=rings)
    moved = replace(snapshot(replace(job, machine=job.later)), taken_s=500.0 + APART_S)
    return snapshot(job, rings=rings), moved


def groups(mesh: Mesh) -> dict[str, GroupView]:
    return {
        gid: GroupView(
            gid=gid,
            name=group.name,
            description=group.description,
            backend="gloo",
            ranks=group.ranks,
        )
        for gid, group in mesh.groups.items()
    }


def _view(job: Job, rank: int, ring: Ring, later_s: float, rng: Random) -> RankView:
    plight = job.plights.get(rank, Plight())
    node = f"node-{job.mesh.node_of(rank)}"
    late_s = rng.uniform(0.0, 0.9)
    has_stack = rng.random() < job.stack_share
    if not plight.is_reported:
        return RankView(rank=rank, node="", link=Link.LOST, age_s=0.0, beat=None)
    age_s = rng.uniform(0.1, 0.9)
    if plight.link is Link.LOST:  # it was last heard just before everything stood still
        age_s += later_s + (job.stall_s if job.lost_s is None else job.lost_s)
    return RankView(
        rank=rank,
        node=node,
        link=plight.link,
        age_s=age_s,
        beat=_beat(job, rank, plight, ring, later_s, late_s),
        stack=_stack(job, rank, plight, has_stack),
    )


def _beat(
    job: Job, rank: int, plight: Plight, ring: Ring, later_s: float, late_s: float
) -> wire.RankBeat:
    is_over = job.machine.is_over(rank) and rank not in job.plights
    is_moving = (is_over and bool(job.programs[rank])) or plight.link is Link.LOST
    if is_moving:
        ring, stall_s, idle_s = replace(ring, is_current=False), 0.2, 0.2
    else:
        stall_s = max(0.0, job.stall_s - late_s) + later_s
        idle_s = max(0.0, job.idle_s - late_s) + later_s
    return beat_at(job, rank, job.place(rank), stall_s, ring, idle_s=idle_s, later_s=later_s)


def beat_at(
    job: Job,
    rank: int,
    place: Place,
    stall_s: float,
    ring: Ring | None = None,
    *,
    idle_s: float | None = None,
    later_s: float = 0.0,
) -> wire.RankBeat:
    """The report of a rank at this place, where it has stood for `stall_s`."""
    program, plight = job.programs[rank], job.plights.get(rank, Plight())
    is_blank = plight.is_new or rank in job.uninitialised
    has_calls = job.shape is Shape.GLOO and not is_blank
    return wire.RankBeat(
        launch=LAUNCH,
        rank=rank,
        local_rank=rank - job.mesh.on_node(job.mesh.node_of(rank))[0],
        world_size=job.mesh.size,
        pid=pid_of(rank, plight),
        start_ticks=5 if plight.is_new else 1,
        restart=1 if plight.is_new else 0,
        process=plight.process,
        depth=wire.Depth.PROBE,
        is_rank_certain=not is_blank,
        beat_age_s=stall_s if silences_probe(plight.process) else 0.3,
        is_initialised=not is_blank,
        is_destroyed=plight.is_destroyed,
        groups=telemetry.group_beats(
            program,
            () if is_blank else job.mesh.of_rank[rank].values(),
            place,
            job.shape,
            ring or Ring(),
            stall_s=stall_s,
            idle_s=stall_s if idle_s is None else idle_s,
        ),
        calls=telemetry.wrapped_calls(program, place, stall_s) if has_calls else (),
        p2p=telemetry.p2p_counts(program, place) if has_calls else (),
        waits=tuple(_older(wait, later_s) for wait in plight.waits),
        gpu=plight.gpu,
    )


def pid_of(rank: int, plight: Plight) -> int:
    return 1000 + rank + (500_000 if plight.is_new else 0)


def _older(wait: wire.InitWait, later_s: float) -> wire.InitWait:
    return wire.InitWait(
        what=wait.what,
        age_s=wait.age_s + later_s,
        expected=wait.expected,
        detail=wait.detail,
        rank=wait.rank,
    )


def _stack(job: Job, rank: int, plight: Plight, has_stack: bool) -> StackFacts | None:
    """The culprits' stacks are always taken; of the waiting ranks only a few."""
    pid = pid_of(rank, plight)
    if rank in job.plights:
        return stack(plight, pid, 1.5)
    course = job.machine.courses[rank]
    if not has_stack or not course.is_inside:
        return None
    call = job.programs[rank][course.place]
    facts = stack(Plight(activity=Activity.COLLECTIVE, where="train.py:30 in step"), pid, 1.5)
    assert facts is not None  # an activity was given
    is_named = call.op != WAIT and call.op not in P2P and job.shape is Shape.GLOO
    return replace(facts, op=call.op if is_named else "")
