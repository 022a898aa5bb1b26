"""A scene on a clock: what each rank's agent would say at any moment. Pure: the time is passed in.

Until the fault every rank makes whole steps; from then on it stands where the machine left it. The
numbers of calls are those of a job that has made all steps since its start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.simulate import places, telemetry
from hangwatch_server.simulate.faults import STEPS, STYLE, Fault, Scene
from hangwatch_server.simulate.machine import Machine
from hangwatch_server.simulate.meshes import PAIR, WORLD
from hangwatch_server.simulate.programs import STYLES
from hangwatch_server.simulate.telemetry import Ring, Shape

FIRST_PID = 20_000
PIDS_PER_RANK = 4  # its own, a thread's, its loader worker's
DUMP_AFTER_S = 2.0  # a probe asks the recorder once its counters have stood so long
KEPT = Ring(kept=3)  # enough to tell what differs, and a beat of many ranks stays small
GPU = "NVIDIA H100 80GB HBM3"
SPINNING = wire.ProcessFacts(state="R", main_cpu_share=0.99, main_still_s=0.0, threads=61)
FROZEN = wire.ProcessFacts(state="S", main_cpu_share=0.0, threads=61)
GONE = wire.ProcessFacts(state="gone", exit_signal=9, exit_reason="killed by SIGKILL")


@dataclass(slots=True)
class Play:
    """`started_s` and all times are of one monotonic clock."""

    scene: Scene
    launch: wire.Launch
    started_s: float = 0.0
    step_s: float = 0.5
    fault_after_s: float = 20.0
    _machine: Machine = field(init=False)
    _gids: dict[str, str] = field(init=False)  # of the mesh -> of the wire
    _infos: dict[str, wire.GroupInfo] = field(init=False)
    _at_end: dict[int, tuple[wire.GroupBeat, ...]] = field(init=False, default_factory=dict)
    _per_step: dict[int, Counter[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._machine = self.scene.run()
        self._infos = {gid: self._info(gid) for gid in self.scene.mesh.groups}
        self._gids = {gid: info.gid for gid, info in self._infos.items()}
        if self.hangs:  # all of it now: at the moment of the fault it would hold the beats up
            self._at_end = {rank: self._end(rank) for rank in range(self.scene.mesh.size)}

    @property
    def hangs(self) -> bool:
        return self.scene.fault is not Fault.HEALTHY

    @property
    def fault_at_s(self) -> float:
        """When the last step begins that some rank does not finish; infinite for a healthy job."""
        if not self.hangs:
            return float("inf")
        steps = max(STEPS, round(self.fault_after_s / self.step_s))
        return self.started_s + steps * self.step_s

    def is_gone(self, node: int, now_s: float) -> bool:
        """Whether the machine and its agent are no more."""
        is_lost = self.scene.fault is Fault.NODE_LOST and now_s >= self.fault_at_s
        return is_lost and node == self.scene.mesh.node_of(self.scene.culprit)

    def groups(self, ranks: Iterable[int]) -> tuple[wire.GroupInfo, ...]:
        """The groups that any of these ranks is in."""
        found = {gid for rank in ranks for gid in self.scene.mesh.of_rank[rank].values()}
        return tuple(info for gid, info in self._infos.items() if gid in found)

    def beat(self, rank: int, now_s: float) -> wire.RankBeat:
        node = self.scene.mesh.on_node(self.scene.mesh.node_of(rank))
        stall_s = now_s - self.fault_at_s
        return wire.RankBeat(
            launch=self.launch.key,
            rank=rank,
            local_rank=rank - node[0],
            world_size=self.scene.mesh.size,
            pid=pid_of(rank - node[0]),
            start_ticks=4711,
            process=self._process(rank, now_s),
            depth=wire.Depth.PROBE,
            is_rank_certain=True,
            script="train.py",
            beat_age_s=0.3,
            step=self._steps(now_s),
            is_initialised=True,
            groups=self._moving(rank, now_s) if stall_s < 0 else self._standing(rank, stall_s),
            gpu=self._gpu(rank, rank - node[0], is_stalled=stall_s >= 0),
        )

    def part(
        self, capture: str, rank: int, kinds: Iterable[wire.CaptureKind], now_s: float
    ) -> wire.CapturePart:
        """What a capture of this rank brings."""
        beat = self.beat(rank, now_s)
        if beat.process.state == GONE.state:
            return self._part(capture, beat, reason="the process is gone", remedy="read its log")
        wants_entries = wire.CaptureKind.RECORDER in kinds
        entries = tuple(
            wire.GroupEntries(gid=group.gid, entries=group.entries)
            for group in beat.groups
            if wants_entries and group.entries
        )
        main = self._stack(rank, now_s)
        stacks = places.processes(beat.pid, main, beat.pid + 2)
        if wire.CaptureKind.STACKS not in kinds:
            return self._part(capture, beat, entries=entries)
        sources = places.sources(stacks)
        return self._part(capture, beat, stacks=stacks, entries=entries, sources=sources)

    def _part(self, capture: str, beat: wire.RankBeat, **found: object) -> wire.CapturePart:
        part = wire.CapturePart(
            capture=capture,
            launch=beat.launch,
            rank=beat.rank,
            pid=beat.pid,
            age_s=0.0,
            process=beat.process,
        )
        return msgspec.structs.replace(part, **found)

    def _stack(self, rank: int, now_s: float) -> tuple[places.Place, ...]:
        if now_s < self.fault_at_s:
            return places.working(rank + self._steps(now_s))
        course = self._machine.courses[rank]
        if not course.is_inside:
            return places.loading()
        call = self.scene.programs[rank][course.place]
        group = self.scene.mesh.groups[call.gid]
        return places.waiting(PAIR if group.description == PAIR else group.axis, call.op)

    def _steps(self, now_s: float) -> int:
        """Steps begun so far."""
        return int((min(now_s, self.fault_at_s) - self.started_s) / self.step_s)

    def _process(self, rank: int, now_s: float) -> wire.ProcessFacts:
        stall_s = now_s - self.fault_at_s
        is_inside = self._machine.courses[rank].is_inside
        if stall_s < 0 or is_inside:
            return SPINNING
        if self.scene.fault is Fault.KILLED:
            return GONE
        local = rank - self.scene.mesh.on_node(self.scene.mesh.node_of(rank))[0]
        worker = wire.ChildFacts(
            pid=pid_of(local) + 2, name="pt_data_worker", role="loader", state="S", cpu_share=0.0
        )
        return msgspec.structs.replace(FROZEN, main_still_s=stall_s, children=(worker,))

    def _gpu(self, rank: int, local: int, *, is_stalled: bool) -> wire.GpuFacts | None:
        if not is_stalled:
            return _gpu_facts(local, 97.0, 612.0)
        is_inside = self._machine.courses[rank].is_inside
        if not is_inside and self.scene.fault is Fault.KILLED:
            return None
        return _gpu_facts(local, 100.0, 134.0) if is_inside else _gpu_facts(local, 0.0, 71.0)

    def _moving(self, rank: int, now_s: float) -> tuple[wire.GroupBeat, ...]:
        steps = self._steps(now_s)
        per_step = self._calls(rank)
        return tuple(
            _moving_beat(self._gids[gid], steps * per_step[gid])
            for gid in self.scene.mesh.of_rank[rank].values()
        )

    def _standing(self, rank: int, stall_s: float) -> tuple[wire.GroupBeat, ...]:
        """The groups of a rank that has come to its end, with what its recorder knows by now."""
        beats = self._at_end[rank]
        if stall_s < DUMP_AFTER_S:
            return tuple(
                msgspec.structs.replace(
                    beat, stall_s=stall_s, entries=(), entries_age_s=None, are_entries_current=False
                )
                for beat in beats
            )
        return tuple(msgspec.structs.replace(beat, stall_s=stall_s) for beat in beats)

    def _end(self, rank: int) -> tuple[wire.GroupBeat, ...]:
        """As the machine says, after all the steps that its few steps stand for."""
        place = telemetry.place_of(self._machine, rank, Shape.NCCL)
        mine = self.scene.mesh.of_rank[rank].values()
        beats = telemetry.group_beats(
            self.scene.programs[rank], mine, place, Shape.NCCL, KEPT, stall_s=0.0, idle_s=0.0
        )
        before = self._steps(self.fault_at_s) - (STEPS - 1)
        per_step = self._calls(rank)
        calls_before = before * per_step.total()
        return tuple(
            _shifted(beat, self._gids[beat.gid], before * per_step[beat.gid], calls_before)
            for beat in beats
        )

    def _calls(self, rank: int) -> Counter[str]:
        """How often a whole step calls each group of the rank."""
        found = self._per_step.get(rank)
        if found is None:
            calls = STYLES[STYLE](self.scene.mesh, rank)
            found = self._per_step[rank] = Counter(call.gid for call in calls)
        return found

    def _info(self, gid: str) -> wire.GroupInfo:
        group = self.scene.mesh.groups[gid]
        members = ranges.text(group.ranks)
        return wire.GroupInfo(
            gid=wire.gid_of(self.launch.key, group.name, members, 1),
            launch=self.launch.key,
            name=group.name,
            description="default_pg" if gid == WORLD else f"mesh_{group.description}",
            backend="nccl",
            ranks=members,
            timeout_s=1800.0,
        )


def pid_of(local_rank: int) -> int:
    return FIRST_PID + PIDS_PER_RANK * local_rank


@lru_cache(maxsize=4096)
def _gpu_facts(index: int, utilisation: float, power_w: float) -> wire.GpuFacts:
    return wire.GpuFacts(
        index=index,
        name=GPU,
        utilisation=utilisation,
        power_w=power_w,
        power_limit_w=700.0,
        memory_used_bytes=71 << 30,
        memory_total_bytes=80 << 30,
        temperature_c=58.0,
    )


@lru_cache(maxsize=200_000)  # the members of a group share their beats
def _moving_beat(gid: str, number: int) -> wire.GroupBeat:
    return wire.GroupBeat(gid=gid, counter=number, stall_s=0.1, seq=number, finished=number)


def _shifted(beat: wire.GroupBeat, gid: str, calls: int, all_calls: int) -> wire.GroupBeat:
    """`beat` after `calls` more calls on its group and `all_calls` more of its rank."""
    entries = tuple(
        msgspec.structs.replace(entry, seq=entry.seq + calls, record_id=entry.record_id + all_calls)
        for entry in beat.entries
    )
    return msgspec.structs.replace(
        beat,
        gid=gid,
        counter=beat.counter + calls,
        seq=None if beat.seq is None else beat.seq + calls,
        finished=None if beat.finished is None else beat.finished + calls,
        entries=entries,
    )
