"""Faults of what ranks call: different, skipped, added or crossed calls, and unmatched P2P.

Each function edits the programs of a scene; what then hangs, and how, is for the machine to find.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.synthetic.jobs import Job, Truth
from tests.synthetic.plights import OUTSIDE
from tests.synthetic.scenery import STEPS, Scene, Unfit, draw
from tests.synthetic.single_faults import MISSING_OR_UNMATCHED, Maker, stopped

from hangwatch_server.model import Kind
from hangwatch_server.simulate.machine import Machine
from hangwatch_server.simulate.meshes import WORLD, add_ring
from hangwatch_server.simulate.programs import BLOCKING_COLLECTIVES, RECV, SEND, Call
from hangwatch_server.simulate.telemetry import Shape

MISMATCH = frozenset({Kind.MISMATCH})
# A call left out shows as whatever comes of it first: a different call, an absence, or a cycle.
OUT_OF_STEP = frozenset({Kind.MISMATCH, Kind.MISSING_RANKS, Kind.DEADLOCK})


def _different(name: str, change: dict[str, object], *, of: str = "") -> Maker:
    """One member of a group of three or more makes a call that differs from the others'."""

    def make(seed: int) -> Job:
        rng = Random(f"{name}/{seed}")
        scene = draw(rng, styles=BLOCKING_COLLECTIVES, least=4)
        rank, place = _place_in_group(scene, least=3, op=of)
        _change(scene, rank, place, change)
        return _blamed(scene, name, seed, MISMATCH, {rank})

    return make


def _change(scene: Scene, rank: int, place: int, change: dict[str, object]) -> None:
    calls = list(scene.programs[rank])
    calls[place] = calls[place]._replace(**change)
    scene.edit(rank, calls)


def _place_in_group(
    scene: Scene, *, least: int, most: int = 1 << 20, op: str = ""
) -> tuple[int, int]:
    """A rank and the place of one of its collectives in a group of a size between these."""
    for _ in range(50):
        rank = scene.any_rank()
        place = scene.any_place(rank)
        call = scene.programs[rank][place]
        members = len(scene.mesh.members(call.gid))
        fits = call.is_collective and least <= members <= most
        if fits and (not op or call.op == op):
            return rank, place
    raise Unfit("no call on a group of such a size")


def _blamed(
    scene: Scene,
    name: str,
    seed: int,
    kinds: frozenset[Kind],
    culprits: set[int],
    allowed: set[int] | None = None,
) -> Job:
    """Raise Unfit where the edit harms nobody."""
    machine = scene.run()
    if all(machine.is_over(rank) for rank in range(scene.mesh.size)):
        raise Unfit("the edit stops nobody")
    truth = Truth(kinds, frozenset(culprits), frozenset(allowed or culprits))
    return scene.job(name, machine, truth, seed)


def root_mismatch(seed: int) -> Job:
    """One member names another root of a broadcast; only gloo's wrapped calls show roots."""
    rng = Random(f"root/{seed}")
    scene = draw(rng, styles=("rooted",), shapes=(Shape.GLOO,), least=4)
    rank, place = _place_in_group(scene, least=3, op="broadcast")
    call = scene.programs[rank][place]
    others = [r for r in scene.mesh.members(call.gid) if r not in (rank, call.root)]
    if rank == call.root:
        raise Unfit("the root itself would be the odd one: its receivers leave no trace")
    _change(scene, rank, place, {"root": rng.choice(others)})
    kinds = frozenset({Kind.MISMATCH, Kind.MISSING_RANKS})
    return _blamed(scene, "root_mismatch", seed, kinds, {rank})


def tie_with_siblings(seed: int) -> Job:
    """In a group of two the calls differ; the sibling groups show who is right."""
    rng = Random(f"tie/{seed}")
    sizes = ((2, 3, 1), (2, 4, 1), (2, 4, 2), (2, 8, 2))
    scene = draw(rng, styles=BLOCKING_COLLECTIVES, sizes=sizes, are_described=True)
    rank, place = _place_in_group(scene, least=2, most=2)
    if len(scene.mesh.siblings(scene.programs[rank][place].gid)) < 2:
        raise Unfit("no siblings to ask")
    _change(scene, rank, place, {"size": 7})
    return _blamed(scene, "tie_with_siblings", seed, MISMATCH, {rank})


def tie(seed: int) -> Job:
    """In the only group of two the calls differ: both sides are named, neither is blamed alone."""
    rng = Random(f"tie alone/{seed}")
    scene = draw(rng, styles=("plain",), sizes=((2, 1, 1), (1, 2, 1)))
    rank, place = _place_in_group(scene, least=2, most=2)
    _change(scene, rank, place, {"size": 7})
    return _blamed(scene, "tie", seed, MISMATCH, {0, 1})


def skipped_call(seed: int) -> Job:
    """One rank leaves out a call."""
    return _out_of_step("skipped_call", seed, lambda call: [])


def extra_call(seed: int) -> Job:
    """One rank makes a call of a group twice."""
    return _out_of_step("extra_call", seed, lambda call: [call, call])


def _out_of_step(name: str, seed: int, instead: Callable[[Call], list[Call]]) -> Job:
    rng = Random(f"{name}/{seed}")
    scene = draw(rng, styles=("sharded",), least=6, are_described=True)
    rank, place = _place_in_group(scene, least=3)
    calls = list(scene.programs[rank])
    call = calls[place]
    calls[place : place + 1] = instead(call)
    are_alike = len({one for one in calls if one.gid == call.gid}) == 1
    scene.edit(rank, calls)
    # Where all calls of the group are alike, no record tells a call left out from a crossed order.
    ring = _ring(scene.run(), rank) if are_alike else set[int]()
    return _blamed(scene, name, seed, OUT_OF_STEP, {rank}, {rank} | ring)


def order_deadlock(seed: int) -> Job:
    """One rank makes the world's call before one of another group: two groups in two orders."""
    rng = Random(f"order/{seed}")
    scene = draw(rng, styles=("plain",))
    rank = scene.any_rank()
    step = len(scene.mesh.of_rank[rank])
    first = step * rng.randrange(0, 3)
    calls = list(scene.programs[rank])
    calls.insert(first + rng.randrange(0, step - 1), calls.pop(first + step - 1))
    scene.edit(rank, calls)
    return _in_ring(scene, "order_deadlock", seed, {rank})


def order_ring(number: int) -> Maker:
    """`number` ranks in pairs with their neighbours; each calls its two pairs in ring order."""

    def make(seed: int) -> Job:
        rng = Random(f"ring {number}/{seed}")
        scene = draw(rng, styles=("plain", "sharded"), least=number)
        ranks = tuple(rng.sample(range(scene.mesh.size), number))
        made = add_ring(scene.mesh, ranks)
        step = rng.randrange(0, 3)
        for place, rank in enumerate(ranks):
            calls = list(scene.programs[rank])
            at = step * (len(calls) // STEPS)
            calls[at:at] = [Call(made[place].gid), Call(made[place - 1].gid)]
            scene.edit(rank, calls)
        return _in_ring(scene, f"order_ring_{number}", seed, set(ranks))

    return make


def _in_ring(scene: Scene, name: str, seed: int, culprits: set[int]) -> Job:
    ring = _ring(scene.run(), min(culprits))
    if not culprits <= ring:
        raise Unfit("no ring of waits came of it")
    return _blamed(scene, name, seed, frozenset({Kind.DEADLOCK}), culprits, ring)


def _ring(machine: Machine, rank: int) -> set[int]:
    """The ranks that wait for `rank` and for which it waits."""
    onward = _reached(machine, rank)
    return {other for other in onward if rank in _reached(machine, other)}


def _reached(machine: Machine, rank: int) -> set[int]:
    seen: set[int] = set()
    stack = [rank]
    while stack:
        for missing in machine.waits_for(stack.pop()):
            if missing not in seen:
                seen.add(missing)
                stack.append(missing)
    return seen


def _of_pipeline(rng: Random) -> Scene:
    sizes = ((1, 1, 2), (1, 1, 4), (2, 1, 2), (2, 2, 2), (1, 2, 4), (4, 4, 2))
    return draw(rng, styles=("pipelined",), sizes=sizes)


def _p2p_place(scene: Scene, op: str) -> tuple[int, int]:
    for _ in range(50):
        rank = scene.any_rank()
        place = scene.any_place(rank)
        if scene.programs[rank][place].op == op:
            return rank, place
    raise Unfit("no such call")


def unmatched_receive(seed: int) -> Job:
    """The peer of a receive is stuck elsewhere and never sends."""
    return _unmatched("unmatched_receive", seed, SEND)


def unmatched_send(seed: int) -> Job:
    """The peer of a (large) send is stuck elsewhere and never receives."""
    return _unmatched("unmatched_send", seed, RECV)


def _unmatched(name: str, seed: int, half: str) -> Job:
    rng = Random(f"{name}/{seed}")
    scene = _of_pipeline(rng)
    rank, place = _p2p_place(scene, half)
    scene.stops[rank] = place
    scene.plights[rank] = OUTSIDE[rng.choice(sorted(OUTSIDE))](rng)
    return stopped(scene, name, seed, MISSING_OR_UNMATCHED, {rank})


def skipped_send(seed: int) -> Job:
    """A stage leaves out one send and goes on: its peer waits, then the stage for its peer."""
    rng = Random(f"skipped send/{seed}")
    scene = _of_pipeline(rng)
    rank, place = _p2p_place(scene, SEND)
    peer = scene.programs[rank][place].peer
    assert peer is not None  # it is a send
    calls = list(scene.programs[rank])
    del calls[place]
    scene.edit(rank, calls)
    kinds = frozenset({Kind.DEADLOCK, Kind.UNMATCHED_P2P, Kind.MISSING_RANKS})
    machine = scene.run()
    allowed = _ring(machine, rank) | {rank}
    return _blamed(scene, "skipped_send", seed, kinds, {rank}, allowed)


def receive_cycle(seed: int) -> Job:
    """Two ranks receive from each other before either sends."""
    rng = Random(f"receive cycle/{seed}")
    scene = draw(rng, styles=("plain", "pipelined"), shapes=(Shape.GLOO,))
    first, second = rng.sample(range(scene.mesh.size), 2)
    step = len(scene.programs[first]) // STEPS, len(scene.programs[second]) // STEPS
    number = rng.randrange(0, 3)
    for rank, peer, length in ((first, second, step[0]), (second, first, step[1])):
        calls = list(scene.programs[rank])
        extra = [Call(WORLD, RECV, peer=peer), Call(WORLD, SEND, peer=peer)]
        calls[number * length : number * length] = extra
        scene.edit(rank, calls)
    return _blamed(scene, "receive_cycle", seed, frozenset({Kind.DEADLOCK}), {first, second})


MAKERS: dict[str, Maker] = {
    "op_mismatch": _different("op_mismatch", {"op": "all_to_all"}),
    "size_mismatch": _different("size_mismatch", {"size": 7}, of="all_reduce"),
    "dtype_mismatch": _different("dtype_mismatch", {"dtype": "Half"}, of="all_reduce"),
    "root_mismatch": root_mismatch,
    "tie_with_siblings": tie_with_siblings,
    "tie": tie,
    "skipped_call": skipped_call,
    "extra_call": extra_call,
    "order_deadlock": order_deadlock,
    "order_ring_2": order_ring(2),
    "order_ring_3": order_ring(3),
    "order_ring_4": order_ring(4),
    "unmatched_receive": unmatched_receive,
    "unmatched_send": unmatched_send,
    "skipped_send": skipped_send,
    "receive_cycle": receive_cycle,
}
