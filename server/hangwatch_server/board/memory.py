"""The board of a single server process: plain dictionaries, touched from one event loop only."""

from __future__ import annotations

from collections.abc import Mapping

from hangwatch_agent import wire
from hangwatch_server import logs, process_states
from hangwatch_server.board import base, ras
from hangwatch_server.board.base import JobMeta, NodeState, ProcessId
from hangwatch_server.board.jobs import BoardJob
from hangwatch_server.board.nodes import BoardNode
from hangwatch_server.board.slots import Slot
from hangwatch_server.model import GroupView, Link, RankView, RasView, Snapshot

# Jobs that ended in the last minutes count as well. Beyond it a node's ranks are not watched: each
# job is looked at twice a second, and its name is made up by whoever starts it.
MAX_JOBS_PER_NODE = 128
_DEPTHS = (wire.Depth.BARE, wire.Depth.RAS, wire.Depth.PROBE)

_log = logs.get()


class MemoryBoard:
    """Implements board.Board."""

    def __init__(self, late_s: float = base.LATE_S, lost_s: float = base.LOST_S) -> None:
        self._late_s = late_s
        self._lost_s = lost_s
        self._jobs: dict[str, BoardJob] = {}
        self._nodes: dict[str, BoardNode] = {}

    def hello(
        self, node: str, hello: wire.Hello, now_s: float, clock_ahead_s: float | None = None
    ) -> None:
        known = self._nodes.setdefault(node, BoardNode(node, hello, now_s))
        known.hello, known.heard_s, known.is_connected = hello, now_s, True
        known.clock_ahead_s = clock_ahead_s

    def disconnected(self, node: str, now_s: float) -> None:
        known = self._nodes.get(node)
        if known is not None:
            known.is_connected = False

    def unknown_groups(self, heartbeat: wire.Heartbeat) -> list[wire.GroupInfo]:
        return [info for info in heartbeat.groups if not self._knows(info)]

    def apply(self, node: str, heartbeat: wire.Heartbeat, now_s: float) -> None:
        known = self._nodes[node]
        known.heard_s = now_s
        known.dropped = heartbeat.dropped
        launches = {launch.key: launch for launch in heartbeat.launches}
        listed: dict[str, set[int]] = {}
        is_live = self._is_live(now_s)
        for beat in heartbeat.ranks:
            launch = launches.get(beat.launch)
            job = self._job_of(known, beat.launch, launch, now_s)
            if job is not None:
                job.take(node, beat, _restart(beat, launch), is_live, now_s)
                listed.setdefault(job.id, set()).add(beat.rank)
        for info in heartbeat.groups:
            described = self._jobs.get(base.job_id(info.launch))
            if described is not None:
                described.add_group(info)
        for id in known.jobs:
            if id in self._jobs:
                self._jobs[id].miss(node, listed.get(id, set()), now_s)
        for report in heartbeat.ras:
            asked = self._jobs.get(base.job_id(report.launch))
            if asked is not None and asked.by_node.get(node):
                asked.ras.take(report, node, now_s)  # a node speaks for no job but its ranks'

    def merge_entries(self, part: wire.CapturePart, now_s: float) -> None:
        job = self._jobs.get(base.job_id(part.launch))
        slot = job.slots.get(part.rank) if job is not None else None
        if slot is not None and slot.beat.pid == part.pid:
            slot.lay(part, now_s)

    def set_base(
        self, job: str, attempt: int, processes: Mapping[int, ProcessId], now_s: float
    ) -> None:
        found = self._jobs.get(job)
        if found is not None:
            found.set_base(attempt, processes, now_s)

    def align(
        self, job: str, attempt: int, processes: Mapping[int, ProcessId], now_s: float
    ) -> None:
        found = self._jobs.get(job)
        if found is not None:
            found.align(attempt, processes, now_s)

    def jobs(self) -> tuple[str, ...]:
        return tuple(self._jobs)

    def snapshot(self, job: str, now_s: float) -> Snapshot | None:
        found = self._jobs.get(job)
        if found is None:
            return None
        size = found.world_size()
        links = self.links(now_s)
        ranks = {rank: self._view(found, rank, links, now_s) for rank in found.listed(size)}
        groups = _used_groups(found, ranks)
        answers = self._ras(found, groups, now_s)
        for view in answers:
            groups.setdefault(view.gid, ras.group_of(view))
        return Snapshot(
            job=job,
            attempt=found.attempt,
            world_size=size,
            ranks=ranks,
            groups=groups,
            taken_s=now_s,
            age_s=now_s - found.attempt_since_s,
            ras=answers,
        )

    def job_meta(self, job: str, now_s: float) -> JobMeta | None:
        found = self._jobs.get(job)
        if found is None:
            return None
        links = self.links(now_s)
        present = [slot for slot in found.slots.values() if found.is_present(slot, now_s)]
        listed = [slot for slot in present if not slot.is_unlisted]
        heard = [slot for slot in listed if links.get(slot.node) is Link.LIVE]
        beats = [slot.beat for slot in listed]
        told = found.ras.ranks(now_s)
        depths = {
            wire.Depth.RAS if beat.depth is wire.Depth.BARE and beat.rank in told else beat.depth
            for beat in beats
        }
        steps = [beat.step for beat in beats if beat.step is not None]
        return JobMeta(
            id=found.id,
            launch=found.launch.key,
            name=found.launch.name,
            script=next((beat.script for beat in beats if beat.script), ""),
            attempt=found.attempt,
            world_size=found.world_size(),
            reporting=len(heard),
            nodes=tuple(sorted({slot.node for slot in present})),
            depth=next((depth for depth in _DEPTHS if depth in depths), wire.Depth.BARE),
            step=min(steps, default=None),
            calls=found.calls,
            moved_s=found.moved_s,
            heard_s=found.heard_s,
            processes_version=found.processes_version,
        )

    def processes(self, job: str) -> dict[int, ProcessId]:
        found = self._jobs.get(job)
        if found is None:
            return {}
        return {
            rank: slot.process for rank, slot in found.slots.items() if slot.number >= found.attempt
        }

    def node_of(self, job: str, rank: int) -> str | None:
        found = self._jobs.get(job)
        slot = found.slots.get(rank) if found is not None else None
        return slot.node if slot is not None else None

    def unheard(self, job: str) -> int:
        return 0

    def links(self, now_s: float) -> dict[str, Link]:
        return {
            node.name: node.link(now_s, self._late_s, self._lost_s) for node in self._nodes.values()
        }

    def nodes(self, now_s: float) -> tuple[NodeState, ...]:
        return tuple(self._node_state(node, now_s) for node in self._nodes.values())

    def forget(self, silent_s: float, now_s: float) -> tuple[str, ...]:
        old = [job.id for job in self._jobs.values() if now_s - _alive_s(job) > silent_s]
        for id in old:
            del self._jobs[id]
        for node in list(self._nodes.values()):
            node.jobs -= set(old)
            node.is_full = node.is_full and len(node.jobs) >= MAX_JOBS_PER_NODE
            if now_s - node.heard_s > silent_s and not node.is_connected and not node.jobs:
                del self._nodes[node.name]
        return tuple(old)

    def _knows(self, info: wire.GroupInfo) -> bool:
        job = self._jobs.get(base.job_id(info.launch))
        return job is not None and info.gid in job.groups

    def _ras(
        self, job: BoardJob, groups: Mapping[str, GroupView], now_s: float
    ) -> tuple[RasView, ...]:
        addresses = {
            name: node.hello.addresses
            for name in job.by_node
            if (node := self._nodes.get(name)) is not None
        }
        present = {rank: slot for rank, slot in job.slots.items() if job.is_present(slot, now_s)}
        return job.ras.views(
            present, addresses, groups, job.world_size(), job.processes_version, now_s
        )

    def _job_of(
        self, node: BoardNode, key: str, launch: wire.Launch | None, now_s: float
    ) -> BoardJob | None:
        """The job that a rank of this node is of; None for one beyond those a node may have."""
        id = base.job_id(key)
        job = self._jobs.get(id)
        if id not in node.jobs:
            if len(node.jobs) >= MAX_JOBS_PER_NODE:
                _note_refused(node, key)
                return None
            node.jobs.add(id)
        if job is None:
            job = BoardJob(id, launch or wire.Launch(key=key, name=key), now_s)
            self._jobs[id] = job
        elif launch is not None:
            job.launch = launch
        return job

    def _is_live(self, now_s: float) -> _Liveness:
        return _Liveness(self._nodes, now_s, self._late_s, self._lost_s)

    def _view(self, job: BoardJob, rank: int, links: dict[str, Link], now_s: float) -> RankView:
        slot = job.slots.get(rank)
        if slot is not None and job.is_present(slot, now_s):
            link = links.get(slot.node, Link.LOST)
            if slot.absent_since_s is not None and link is Link.LIVE and not slot.is_unlisted:
                link = Link.LATE
            return RankView(
                rank=rank,
                node=slot.node,
                link=link,
                age_s=now_s - slot.heard_s,
                beat=None if slot.is_unlisted else slot.beat,
                places=None if slot.is_unlisted else slot.places,
            )
        return self._absent(job, rank, slot, links, now_s)

    def _absent(
        self, job: BoardJob, rank: int, slot: Slot | None, links: dict[str, Link], now_s: float
    ) -> RankView:
        """A rank that no process holds now; after a server restart its node may still come back."""
        stored = job.base_processes.get(rank)
        if slot is None and stored is not None and job.attempt == job.base_attempt:
            age_s = now_s - job.created_s
            away = Link.LOST if age_s > self._lost_s else Link.LATE
            link = links.get(stored[0], away)
            return RankView(rank=rank, node=stored[0], link=link, age_s=age_s, beat=None)
        age_s = now_s - job.attempt_since_s
        return RankView(rank=rank, node="", link=Link.LIVE, age_s=age_s, beat=None)

    def _node_state(self, node: BoardNode, now_s: float) -> NodeState:
        jobs = [self._jobs[id] for id in node.jobs if id in self._jobs]
        slots_here = [job.slots[rank] for job in jobs for rank in job.by_node.get(node.name, ())]
        beats = [slot.beat for slot in slots_here if not slot.is_gone and not slot.is_unlisted]
        depths = {beat.depth for beat in beats}
        return NodeState(
            name=node.name,
            hello=node.hello,
            link=node.link(now_s, self._late_s, self._lost_s),
            age_s=now_s - node.heard_s,
            jobs=tuple(sorted({base.job_id(beat.launch) for beat in beats})),
            ranks=len(beats),
            depth=next((depth for depth in _DEPTHS if depth in depths), wire.Depth.BARE),
            dropped=node.dropped,
            clock_ahead_s=node.clock_ahead_s,
        )


class _Liveness:
    """Answers whether a node is heard at one moment, without computing all links for each frame."""

    def __init__(
        self, nodes: Mapping[str, BoardNode], now_s: float, late_s: float, lost_s: float
    ) -> None:
        self._nodes, self._now_s, self._late_s, self._lost_s = nodes, now_s, late_s, lost_s

    def __call__(self, name: str) -> bool:
        node = self._nodes.get(name)
        if node is None:
            return False
        return node.link(self._now_s, self._late_s, self._lost_s) is Link.LIVE


def _note_refused(node: BoardNode, key: str) -> None:
    """Once per node until some of its jobs are forgotten: each heartbeat would say it again."""
    if not node.is_full:
        node.is_full = True
        _log.warning("job_not_watched", node=node.name, launch=key, most=MAX_JOBS_PER_NODE)


def _restart(beat: wire.RankBeat, launch: wire.Launch | None) -> int:
    """The launcher's count is that of its living ranks; one that is gone may be older."""
    if launch is None or process_states.has_ended(beat.process):
        return beat.restart
    return max(beat.restart, launch.restart)


def _used_groups(job: BoardJob, ranks: Mapping[int, RankView]) -> dict[str, GroupView]:
    used = {
        group.gid for view in ranks.values() if view.beat is not None for group in view.beat.groups
    }
    used.update(call.gid for v in ranks.values() if v.beat is not None for call in v.beat.calls)
    return {gid: job.groups[gid] for gid in used if gid in job.groups}


def _alive_s(job: BoardJob) -> float:
    """When a living process of the job was last heard of."""
    return max((slot.alive_s for slot in job.slots.values()), default=job.created_s)
