"""A developer's preview of the pages: the real routes over hand-made scenes, without a database.

Run it with `python -m uvicorn --factory tests.web.preview:app` from the checkout. Not for testing
what the server says: only how pages show it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from types import SimpleNamespace

from fastapi import FastAPI, Request, Response
from tests.web import hangs, making, preview_admin, preview_alerts, scenes

from hangwatch_server import diagnose, model, quotas, ranges, security
from hangwatch_server.api import problems
from hangwatch_server.bus import MemoryBus
from hangwatch_server.db import audit
from hangwatch_server.db import captures as capture_rows
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import moments as moment_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.incidents import ways
from hangwatch_server.pages import install
from hangwatch_server.settings import ServerSettings
from hangwatch_server.watch import rows as watch_rows

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
OPERATOR_HASH = "preview-operator"
OVER_S = 7200.0  # since a job that is over was seen


class SceneWatch:
    """The read methods of watch.Watch over a scene."""

    def __init__(self, scene: scenes.Scene) -> None:
        self._scene = scene

    async def live_jobs(self) -> list[model.Job]:
        return [job for job in self._scene.jobs if job.is_live]

    async def earlier_jobs(
        self,
        *,
        state: model.State | None,
        query: str,
        limit: int,
        cursor: str | None,
        names: str = "",
    ) -> tuple[list[model.Job], str | None]:
        rows = [
            job
            for job in self._scene.jobs
            if not job.is_live
            and (state is None or job.state is state)
            and query.lower() in job.name.lower()
        ]
        return rows[:limit], None

    async def pace(self, job_id: str) -> tuple[model.TimelinePoint, ...]:
        return (await self.timeline(job_id))[::3] if (await self.job(job_id)).is_live else ()

    async def rank(self, job_id: str, rank: int) -> model.RankDetail:
        job = await self.job(job_id)
        row = next((row for row in await self.ranks(job_id) if row.rank == rank), None)
        if row is None:
            raise NotFoundError(f"job '{job_id}' has no live rank {rank}")
        return making.rank_detail(job, row, await self.groups(job_id))

    async def job(self, job_id: str) -> model.Job:
        for job in self._scene.jobs:
            if job.id == job_id:
                return job
        raise NotFoundError(f"Job '{job_id[:40]}' is not known: list jobs with `hangwatch status`.")

    async def job_by_name(self, name: str) -> model.Job:
        for job in self._scene.jobs:
            if job.name == name:
                return job
        raise NotFoundError(f"No job is named '{name[:40]}'.")

    async def verdict(self, job_id: str) -> model.Verdict:
        return (await self.job(job_id)).verdict

    async def ranks(self, job_id: str) -> tuple[model.RankRow, ...]:
        return self._scene.ranks[job_id]

    async def groups(self, job_id: str) -> tuple[model.GroupRow, ...]:
        return self._scene.groups[job_id]

    async def mesh(self, job_id: str) -> model.Mesh:
        groups = self._scene.groups[job_id]
        size = len(self._scene.ranks[job_id])
        views = [making.group_view(row) for row in groups]
        families = diagnose.families(groups)
        return model.Mesh(world_size=size, axes=diagnose.axes(views, size), families=families)

    async def lags(self, job_id: str, *, gid: str = "", family: str = "") -> tuple[model.Lag, ...]:
        rows = [
            row
            for row in self._scene.groups[job_id]
            if (row.family == family if family else row.gid == gid)
        ]
        if not rows:
            raise NotFoundError(f"there is no group '{gid or family}'")
        return tuple(lag for row in rows for lag in making.lags(row))

    async def depths(self, job_id: str) -> tuple[model.DepthRow, ...]:
        return watch_rows.depths(self._scene.ranks[job_id])

    async def path(self, job_id: str, rank: int) -> tuple[model.PathStep, ...]:
        job = await self.job(job_id)
        return (
            model.PathStep(rank=rank, waits_in="tp-9 all_reduce #5", for_=(1,)),
            *job.verdict.path[1:],
        )

    async def incident_path(
        self, incident: model.Incident, rank: int
    ) -> tuple[model.PathStep, ...]:
        if incident.state in model.ACTIVE_INCIDENTS and incident.job in self._scene.ranks:
            return await self.path(incident.job, rank)
        return ways.way(incident.verdict, rank)

    async def timeline(self, job_id: str) -> tuple[model.TimelinePoint, ...]:
        job = await self.job(job_id)
        is_stuck = job.state is model.State.HUNG
        over_s = 0.0 if job.is_live else OVER_S
        return tuple(
            model.TimelinePoint(
                ago_s=ago + over_s,
                calls_per_s=0.0 if is_stuck and ago < 250 else 12.0 + (ago * 7 % 13) / 4,
                state=_state_at(job, ago),
                phase="checkpoint" if 900 < ago <= 1020 else "",
                attempt=job.attempt - (ago > 1500 and job.attempt > 1),
            )
            for ago in range(1800, -1, -10)
        )

    async def nodes(self) -> tuple[model.NodeRow, ...]:
        return tuple(self._scene.nodes)

    async def node(self, name: str) -> model.NodeRow:
        for node in self._scene.nodes:
            if node.name == name:
                return node
        raise NotFoundError(f"Node '{name[:40]}' is not known.")


class SceneCaptures:
    """The read methods of captures.Captures; a request shows one that is being taken."""

    def __init__(self, scene: scenes.Scene) -> None:
        self._scene = scene

    async def get(self, capture_id: str) -> model.Capture:
        if capture_id not in self._scene.captures:
            raise NotFoundError(f"Capture '{capture_id[:40]}' is not known.")
        return self._scene.captures[capture_id]

    async def tree(
        self,
        capture_id: str,
        *,
        native: bool = False,
        framework: bool = True,
        before: str | None = None,
    ) -> model.Tree:
        await self.get(capture_id)
        return self._scene.trees[capture_id]

    async def compare(self, before: str, after: str) -> model.Comparison:
        await self.get(before)
        await self.get(after)
        return self._scene.comparisons[before, after]

    async def of_job(
        self, job_id: str, *, limit: int = 50, before: str | None = None
    ) -> tuple[list[model.Capture], str | None]:
        of_job = [row for row in self._scene.captures.values() if row.job == job_id]
        return sorted(of_job, key=lambda row: row.requested_at, reverse=True)[:limit], None

    def waited_for(self, capture_id: str) -> dict[str, str]:
        return self._scene.waited_for.get(capture_id, {})

    async def text(self, capture_id: str) -> str:
        await self.get(capture_id)
        return "rank 5\n  train.py:88 __getitem__\n"

    async def incident_tree(
        self, incident_id: str, *, native: bool = False, framework: bool = True
    ) -> model.Tree:
        captures = next(row for row in self._scene.incidents if row.id == incident_id).captures
        empty = model.Tree(capture="", roots=(), classes=(), missing=())
        return self._scene.trees[captures[-1]] if captures else empty

    async def rank_tree(self, job_id: str, rank: int, *, native: bool = False) -> model.Tree:
        for capture in self._scene.captures.values():
            if capture.job == job_id and capture.id in self._scene.trees:
                return _of_rank(self._scene.trees[capture.id], rank)
        return model.Tree(capture="", roots=(), classes=(), missing=())

    async def incident_text(self, incident_id: str) -> str:
        return "rank 5\n  train.py:88 __getitem__\n"

    async def request(self, job_id: str, **asked: object) -> model.Capture:
        return self._scene.captures["cap-taking"]


def _state_at(job: model.Job, ago_s: int) -> model.State:
    """A hung job made progress first, and was suspected before it was hung."""
    if job.state is not model.State.HUNG or ago_s < 230:
        return job.state
    return model.State.SUSPECTED if ago_s < 250 else model.State.HEALTHY


def build() -> FastAPI:
    """An application with the pages' routes, and nothing to show yet."""
    app = FastAPI(openapi_url=None, lifespan=_lifespan)
    install(app)
    problems.install(app)
    app.middleware("http")(_with_policy)
    return app


def show(
    app: FastAPI, scene: scenes.Scene, patch: Callable[[object, str, object], None] = setattr
) -> None:
    """From now on it shows this scene; `patch` replaces the database functions it calls."""
    app.state.scene = scene
    app.state.bus = MemoryBus()
    app.state.sessions = preview_admin.SceneSessions()
    app.state.settings = SimpleNamespace(allow_anonymous=True, proxy_user_header="")
    app.state.origins = {"retention_days": "environment HANGWATCH_RETENTION_DAYS"}
    app.state.services = SimpleNamespace(
        watch=SceneWatch(scene),
        captures=SceneCaptures(scene),
        bus=app.state.bus,
        missing=lambda: "",
        db=scene,
        tokens=preview_admin.SceneTokens(OPERATOR_HASH),
        settings=ServerSettings(retention_days=14.0),
        guard=security.Guard(0, 0),
        senders=None,
        quotas=quotas.of(ServerSettings()),
    )
    for name, function in {
        "find": _find,
        "list_page": _list_page,
        "count_confirmed": _count_confirmed,
        "last_ended": _last_ended,
        "acknowledge": _acknowledge,
        "snooze": _snooze,
        "comment": _comment,
    }.items():
        patch(incident_rows, name, function)
    patch(capture_rows, "of_rank", _captures_of_rank)
    patch(capture_rows, "summaries", _summaries)
    patch(moment_rows, "newest", _newest_moment)
    patch(moment_rows, "of_incident", _moments)
    patch(audit, "record", _record)
    preview_admin.install(patch)
    preview_alerts.install(patch)


def app() -> FastAPI:
    """For uvicorn: everything at once."""
    app = build()
    show(app, hangs.everything())
    return app


def operator_cookie(app: FastAPI) -> str:
    sessions: preview_admin.SceneSessions = app.state.sessions
    return sessions.issue(OPERATOR_HASH)


def admin_cookie(app: FastAPI) -> str:
    sessions: preview_admin.SceneSessions = app.state.sessions
    return sessions.issue(preview_admin.ADMIN_HASH)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.loop = asyncio.get_running_loop()
    app.state.bus = MemoryBus()
    yield


async def _with_policy(request: Request, call_next: Callable[..., object]) -> Response:
    response: Response = await call_next(request)  # type: ignore[misc]
    response.headers["content-security-policy"] = POLICY
    return response


async def _find(scene: scenes.Scene, incident_id: str) -> model.Incident | None:
    return next((row for row in scene.incidents if row.id == incident_id), None)


async def _list_page(
    scene: scenes.Scene,
    *,
    states: tuple[model.IncidentState, ...] | None = None,
    job: str | None = None,
    node: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    before: str | None = None,
    names: str = "",
) -> tuple[list[model.Incident], str | None]:
    rows = [
        row
        for row in scene.incidents
        if (states is None or row.state in states)
        and (node is None or node in row.culprit_nodes)
        and (job is None or job in (row.job, row.job_name))
        and (since is None or row.opened_at >= since)
        and (until is None or row.opened_at < until)
    ]
    start = 0 if before is None else 1 + [row.id for row in rows].index(before)
    page = rows[start : start + limit]
    return page, page[-1].id if start + limit < len(rows) else None


async def _count_confirmed(scene: scenes.Scene, names: str = "") -> int:
    return sum(row.state is model.IncidentState.CONFIRMED for row in scene.incidents)


async def _last_ended(scene: scenes.Scene, names: str = "") -> model.Incident | None:
    return next((row for row in scene.incidents if row.ended_at), None)


async def _captures_of_rank(
    scene: scenes.Scene, job: str, rank: int, limit: int = 20
) -> list[model.RankCapture]:
    return [
        model.RankCapture(
            capture=capture.id,
            attempt=capture.attempt,
            incident=capture.incident,
            requested_at=capture.requested_at,
            requested_by=capture.requested_by,
            has_stacks=part.has_stacks,
            has_entries=part.has_entries,
            reason=part.reason,
            remedy=part.remedy,
        )
        for capture in scene.captures.values()
        for part in capture.parts
        if capture.job == job and part.rank == rank
    ][:limit]


def _of_rank(tree: model.Tree, rank: int) -> model.Tree:
    """What a tree says of one rank."""

    def cut(nodes: tuple[model.TreeNode, ...]) -> tuple[model.TreeNode, ...]:
        return tuple(
            dataclasses.replace(node, ranks=str(rank), count=1, children=cut(node.children))
            for node in nodes
            if rank in ranges.parse(node.ranks)
        )

    return dataclasses.replace(tree, roots=cut(tree.roots))


async def _acknowledge(scene: scenes.Scene, incident_id: str, by: str, comment: str) -> None:
    _replace(scene, incident_id, acknowledged_by=by)


async def _snooze(
    scene: scenes.Scene, incident_id: str, by: str, until: datetime, *, to_end: bool
) -> None:
    _replace(scene, incident_id, snoozed_until=until, is_snoozed_to_end=to_end)


async def _comment(scene: scenes.Scene, incident_id: str, by: str, text: str) -> None:
    said = model.Comment(at=datetime.now(UTC), by=by, text=text)
    found = await _find(scene, incident_id)
    assert found is not None
    _replace(scene, incident_id, comments=(*found.comments, said))


def _replace(scene: scenes.Scene, incident_id: str, **changes: object) -> None:
    scene.incidents = [
        dataclasses.replace(row, **changes) if row.id == incident_id else row  # type: ignore[arg-type]
        for row in scene.incidents
    ]


async def _summaries(scene: scenes.Scene, incident_id: str) -> list[model.CaptureSummary]:
    incident = await _find(scene, incident_id)
    found = [scene.captures[name] for name in incident.captures] if incident else []
    return [making.summary(capture) for capture in found]


async def _moments(scene: scenes.Scene, incident_id: str) -> tuple[model.Moment, ...]:
    moment = scene.moments.get(incident_id)
    return (moment,) if moment is not None else ()


async def _newest_moment(scene: scenes.Scene, incident_id: str) -> model.Moment | None:
    return scene.moments.get(incident_id)


async def _record(*_: object) -> None:
    return None
