"""What the doors ask of the watch: jobs, verdicts, ranks, groups, nodes. Reads, never decides."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import TypeVar

from hangwatch_server import diagnose
from hangwatch_server.board import Board
from hangwatch_server.bus import Bus
from hangwatch_server.captures.service import Captures
from hangwatch_server.clock import Clock
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.db import nodes as node_rows
from hangwatch_server.db import timelines
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import NotFoundError
from hangwatch_server.incidents import ways
from hangwatch_server.model import (
    ACTIVE_INCIDENTS,
    DepthRow,
    GroupRow,
    Hold,
    Incident,
    Job,
    Lag,
    Mesh,
    NodeRow,
    PathStep,
    RankDetail,
    RankRow,
    State,
    TimelinePoint,
    Verdict,
)
from hangwatch_server.watch import rows, tabled, verdicts
from hangwatch_server.watch.loop import Loop
from hangwatch_server.watch.tabled import Tabled
from hangwatch_server.watch.watched import Watched

LONGEST_WAIT_S = 120.0
# Bound a wait on events of which one may have been dropped. Many wait long for a verdict, of which
# every change is told; few hold, and what they wait for has no event of its own.
RECHECK_VERDICT_S = 15.0
RECHECK_S = 1.0
_UNSEEN = "No agent reports this job now; this is what was known last."
_HOLDS = (State.SUSPECTED, State.HUNG)
T = TypeVar("T")


class Watch:
    """The read side of the loop."""

    def __init__(
        self,
        *,
        loop: Loop,
        db: Database,
        board: Board,
        bus: Bus,
        captures: Captures,
        clock: Clock,
    ) -> None:
        self._loop, self._db, self._board = loop, db, board
        self._bus, self._captures, self._clock = bus, captures, clock

    async def jobs(
        self,
        *,
        state: State | None = None,
        query: str = "",
        limit: int = 50,
        cursor: str | None = None,
        names: str = "",
    ) -> tuple[list[Job], str | None]:
        """A page of jobs, newest first, and the cursor of the next page; `names` is a pattern."""
        stored, after = await job_rows.list_page(
            self._db, state=state, query=query, limit=limit, before=cursor, names=names
        )
        return [self._fresh(job) for job in stored], after

    def is_followed(self, job_id: str) -> bool:
        """Whether another server owns the detection of a job that is on the board here."""
        watched = self._loop.watched.get(job_id)
        return watched is not None and watched.is_followed

    def is_ours(self, job_id: str) -> bool:
        """Whether this server decides about a job, and could write it down at the newest look."""
        watched = self._loop.watched.get(job_id)
        return watched is not None and watched.is_ours

    async def live_jobs(self) -> list[Job]:
        """Every job that is on the board now, in no order."""
        now_s = self._clock.monotonic_s()
        return [watched.job(now_s) for watched in self._loop.watched.values()]

    async def earlier_jobs(
        self,
        *,
        state: State | None = None,
        query: str = "",
        limit: int = 50,
        cursor: str | None = None,
        names: str = "",
    ) -> tuple[list[Job], str | None]:
        """Jobs that no agent reports any more, newest first, and the cursor of the next page."""
        states = verdicts.stored_as(state)
        if not states:
            return [], None
        stored, after = await job_rows.list_page(
            self._db,
            states=states,
            query=query,
            limit=limit,
            before=cursor,
            without=tuple(self._loop.watched),
            names=names,
        )
        return [self._fresh(job) for job in stored], after

    async def job(self, job_id: str) -> Job:
        """Raise NotFoundError for an id that neither board nor database knows."""
        watched = self._loop.watched.get(job_id)
        if watched is not None:
            return watched.job(self._clock.monotonic_s())
        stored = await job_rows.find(self._db, job_id)
        if stored is None:
            raise NotFoundError(f"there is no job '{job_id}': `hangwatch status` lists all jobs")
        return self._fresh(stored)

    async def job_by_name(self, name: str) -> Job:
        """The newest job of this name."""
        live = [item for item in self._loop.watched.values() if item.meta.name == name]
        if live:
            newest = max(live, key=lambda item: item.first_seen)
            return newest.job(self._clock.monotonic_s())
        stored = await job_rows.find_by_name(self._db, name)
        if stored is None:
            raise NotFoundError(
                f"there is no job named '{name}': `hangwatch status` lists all jobs"
            )
        return self._fresh(stored)

    async def verdict(self, job_id: str, *, index: int | None = None, wait_s: float = 0) -> Verdict:
        """The verdict now or, if `index` is the present one, when it changes or time is up."""
        with self._bus.subscribe((f"verdict:{job_id}",)) as changes:
            verdict = await self._verdict_since(job_id, index)
            end_s = self._clock.monotonic_s() + min(wait_s, LONGEST_WAIT_S)
            while index is not None and verdict.index == index:
                left_s = end_s - self._clock.monotonic_s()
                if left_s <= 0:
                    break
                await changes.next(min(left_s, RECHECK_VERDICT_S))
                verdict = await self._verdict_since(job_id, index)
            return verdict

    async def _verdict_since(self, job_id: str, index: int | None) -> Verdict:
        """What is shown; to somebody who has seen a later one at another server, what is stored.

        Whoever waits for changes must never be told of them in another order.
        """
        verdict = (await self.job(job_id)).verdict
        if index is None or verdict.index >= index:
            return verdict
        stored = await job_rows.find(self._db, job_id)
        is_later = stored is not None and stored.verdict.index > verdict.index
        return stored.verdict if stored is not None and is_later else verdict

    async def ranks(self, job_id: str) -> tuple[RankRow, ...]:
        """A row per rank; none for a job that no agent reports."""
        return (await self._tables(job_id)).ranks

    async def rank(self, job_id: str, rank: int) -> RankDetail:
        """All that is known of one rank; raise NotFoundError for one that no agent reports."""
        watched = await self._live(job_id)
        if watched is None or rank not in watched.snapshot.ranks:
            raise NotFoundError(f"job '{job_id}' has no live rank {rank}")
        snapshot, finding = watched.snapshot, watched.finding
        return await _run(watched, lambda: diagnose.rank_detail(snapshot, finding, rank))

    async def groups(self, job_id: str) -> tuple[GroupRow, ...]:
        """A row per group, without members; those that wait come first."""
        return (await self._tables(job_id)).groups

    async def mesh(self, job_id: str) -> Mesh:
        """How the job's groups lie over its ranks."""
        watched = await self._live(job_id)
        if watched is None:
            return Mesh(world_size=0)
        groups, snapshot = await self.groups(job_id), watched.snapshot
        made_of = frozenset(snapshot.groups), snapshot.world_size
        if watched.axes is None or watched.axes[0] != made_of:
            found = await _run(watched, lambda: diagnose.axes(snapshot.groups.values(), made_of[1]))
            watched.axes = made_of, found
        families = await _run(watched, lambda: diagnose.families(groups))
        return Mesh(world_size=snapshot.world_size, axes=watched.axes[1], families=families)

    async def lags(self, job_id: str, *, gid: str = "", family: str = "") -> tuple[Lag, ...]:
        """How far each member is behind the front: of one group, or of all in one family."""
        watched = await self._live(job_id)
        if watched is None:
            return ()
        snapshot = watched.snapshot
        if family:
            gids = [row.gid for row in diagnose.members(await self.groups(job_id), family)]
        else:
            gids = [(await self.group(job_id, gid)).gid]
        known = [gid for gid in gids if gid in snapshot.groups]
        return await _run(watched, lambda: diagnose.lags(snapshot, known))

    async def depths(self, job_id: str) -> tuple[DepthRow, ...]:
        """The job's nodes by how deep they are seen."""
        watched, found = await self._live(job_id), await self.ranks(job_id)
        return () if watched is None else await _run(watched, lambda: rows.depths(found))

    async def group(self, job_id: str, gid: str) -> GroupRow:
        """One group with its members; raise NotFoundError for an unknown one."""
        watched = await self._live(job_id)
        if watched is None or gid not in watched.snapshot.groups:
            raise NotFoundError(
                f"job '{job_id}' has no live group '{gid}': "
                f"GET /api/v1/jobs/{job_id}/groups lists them"
            )
        snapshot = watched.snapshot
        return await _run(watched, lambda: diagnose.group_row(snapshot, gid))

    async def path(self, job_id: str, rank: int) -> tuple[PathStep, ...]:
        """Why a rank waits, step by step; () when it waits for nobody."""
        watched = await self._live(job_id)
        if watched is None or rank not in watched.snapshot.ranks:
            raise NotFoundError(f"job '{job_id}' has no live rank {rank}")
        snapshot = watched.snapshot
        return await _run(watched, lambda: diagnose.path(snapshot, rank))

    async def incident_path(self, incident: Incident, rank: int) -> tuple[PathStep, ...]:
        """Why a rank waits, by the live graph while the incident lasts, else by its verdict."""
        watched = self._loop.watched.get(incident.job)
        is_live = watched is not None and watched.snapshot.attempt == incident.attempt
        if incident.state in ACTIVE_INCIDENTS and is_live:
            try:
                found = await self.path(incident.job, rank)
            except NotFoundError:
                found = ()
            if found:
                return found
        return ways.way(incident.verdict, rank)

    async def nodes(self) -> tuple[NodeRow, ...]:
        """All nodes by name: those with an agent now, and those known from before."""
        known = {
            row.name: row for row in await node_rows.list_all(self._db, self._loop.history_by_node)
        }
        known.update({row.name: row for row in self._live_nodes()})
        return tuple(known[name] for name in sorted(known))

    async def node(self, name: str) -> NodeRow:
        """Raise NotFoundError for a node that was never seen."""
        for row in self._live_nodes():
            if row.name == name:
                return row
        stored = await node_rows.find(self._db, name, self._loop.history_by_node)
        if stored is None:
            raise NotFoundError(f"there is no node '{name}': no agent ever connected by that name")
        return stored

    async def timeline(self, job_id: str) -> tuple[TimelinePoint, ...]:
        """Calls per second over the last half hour, of a job that is over the last it was seen."""
        watched = await self._live(job_id)
        if watched is None:
            return await timelines.find(self._db, job_id)
        return rows.timeline(watched.points, self._clock.monotonic_s())

    async def pace(self, job_id: str) -> tuple[TimelinePoint, ...]:
        """The timeline in few points, which change only as their span of time is over."""
        watched = self._loop.watched.get(job_id)
        return () if watched is None else rows.pace(watched.points, self._clock.monotonic_s())

    async def hold(self, job_id: str, timeout_s: float) -> Hold:
        """Whether evidence of a hang is stored; waits for it only where there is a hang."""
        end_s = self._clock.monotonic_s() + min(timeout_s, LONGEST_WAIT_S)
        with self._bus.subscribe((f"job:{job_id}",)) as changes:
            while True:
                verdict = (await self.job(job_id)).verdict
                is_stored = self._captures.has_evidence(verdict.incident)
                left_s = end_s - self._clock.monotonic_s()
                if is_stored or not self._may_bring_evidence(verdict) or left_s <= 0:
                    return Hold(
                        evidence_stored=is_stored or verdict.action.evidence_stored,
                        state=verdict.state,
                        incident=verdict.incident,
                    )
                await changes.next(min(left_s, RECHECK_S))

    def _may_bring_evidence(self, verdict: Verdict) -> bool:
        """Of ranks that are gone nothing comes that is not on its way already."""
        if verdict.state is State.FAILED:
            return self._captures.is_taking(verdict.job)
        return verdict.state in _HOLDS

    async def _tables(self, job_id: str) -> diagnose.Tables:
        """Made once for each look at the job, however many people have its page open."""
        watched = await self._live(job_id)
        if watched is None:
            return diagnose.Tables((), ())
        async with watched.tabling:
            made = watched.tabled
            if made is None or not made.holds(watched, self._clock.monotonic_s()):
                made = watched.tabled = await self._made(watched)
            return made.tables

    async def _made(self, watched: Watched) -> Tabled:
        snapshot, finding = watched.snapshot, watched.finding
        begun_s = self._clock.monotonic_s()
        tables = await _run(watched, lambda: diagnose.tables(snapshot, finding))
        return tabled.of(tables, snapshot, finding, begun_s, self._clock.monotonic_s())

    async def _live(self, job_id: str) -> Watched | None:
        watched = self._loop.watched.get(job_id)
        if watched is None:
            await self.job(job_id)  # raises for an unknown one
        return watched

    def _live_nodes(self) -> list[NodeRow]:
        now = self._clock.now()
        history = self._loop.history_by_node
        return [
            rows.of_node(node, history, now)
            for node in self._board.nodes(self._clock.monotonic_s())
        ]

    def _fresh(self, stored: Job) -> Job:
        """A stored job as it is now: live from the board, else marked as known from before."""
        watched = self._loop.watched.get(stored.id)
        if watched is not None:
            return watched.job(self._clock.monotonic_s())
        verdict = verdicts.unseen(stored.verdict, _UNSEEN)
        return dataclasses.replace(
            stored, verdict=verdict, state=verdict.state, reporting=0, is_live=False
        )


async def _run(watched: Watched, work: Callable[[], T]) -> T:
    if watched.is_large:
        return await asyncio.to_thread(work)
    return work()
