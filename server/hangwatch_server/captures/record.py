"""What is on record: stored captures, merged, compared and exported. It asks no agent."""

from __future__ import annotations

from hangwatch_server.captures import reading, shelf
from hangwatch_server.captures.shelf import TreeShelf
from hangwatch_server.clock import Clock
from hangwatch_server.db import captures as rows
from hangwatch_server.db import stacks as stack_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import ConflictError, NotFoundError
from hangwatch_server.model import Capture, CaptureState, Comparison, Tree


class Record:
    """The stored captures of all jobs."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock
        self._trees = TreeShelf()

    async def get(self, capture_id: str) -> Capture:
        """Raise NotFoundError for an unknown id."""
        capture = await rows.find(self._db, capture_id)
        if capture is None:
            raise NotFoundError(
                f"there is no capture '{capture_id}': its job page lists those that are kept"
            )
        return capture

    async def tree(
        self,
        capture_id: str,
        *,
        native: bool = False,
        framework: bool = True,
        before: str | None = None,
    ) -> Tree:
        """The merged stacks, compared with the capture `before` or else the one before it."""
        capture = await self.get(capture_id)
        earlier = await self._comparable(before, capture) if before else None

        async def make() -> Tree:
            return await reading.tree(
                self._db, capture, native=native, framework=framework, before=earlier
            )

        if capture.state is CaptureState.TAKING:
            return await make()
        key = (capture_id, native, framework, before)
        return await self._trees.get(key, make, self._clock.monotonic_s())

    async def compare(self, before: str, after: str) -> Comparison:
        """What moved between two captures of one job; ConflictError for captures of two jobs."""
        later = await self.get(after)
        return await reading.comparison(self._db, await self._comparable(before, later), later)

    async def of_job(
        self, job_id: str, *, limit: int = 50, before: str | None = None
    ) -> tuple[list[Capture], str | None]:
        """A job's captures, newest first, without their parts; next cursor or None."""
        return await rows.list_page(self._db, job_id, limit=limit, before=before)

    async def speedscope(self, capture_id: str, *, native: bool = False) -> bytes:
        """A file for https://www.speedscope.app."""
        return await reading.speedscope(self._db, await self.get(capture_id), native=native)

    async def chrome_trace(self, capture_id: str, *, native: bool = False) -> bytes:
        """A trace for Perfetto or chrome://tracing."""
        return await reading.chrome_trace(self._db, await self.get(capture_id), native=native)

    async def incident_tree(
        self, incident_id: str, *, native: bool = False, framework: bool = True
    ) -> Tree:
        """The newest stacks of each rank over all captures of the incident, merged."""
        captures = await rows.of_incident(self._db, incident_id)

        async def make() -> Tree:
            last = captures[-1].id if captures else ""
            return await reading.incident_tree(
                self._db, incident_id, last, native=native, framework=framework
            )

        if any(capture.state is CaptureState.TAKING for capture in captures):
            return await make()
        stamp = await stack_rows.stamp_of_incident(self._db, incident_id)
        key = (incident_id, stamp, native, framework)
        now_s = self._clock.monotonic_s()
        return await self._trees.get(key, make, now_s, shelf.KEEP_STAMPED_S)

    async def rank_tree(self, job_id: str, rank: int, *, native: bool = False) -> Tree:
        """The newest stored stacks of one rank; an empty tree when there are none."""
        return await reading.rank_tree(self._db, job_id, rank, native=native)

    async def incident_text(self, incident_id: str) -> str:
        """The same as plain text."""
        return await reading.incident_text(self._db, incident_id)

    async def text(self, capture_id: str, *, native: bool | None = None) -> str:
        """The merged stacks as plain text; native frames where it was taken with them."""
        capture = await self.get(capture_id)
        shown = capture.native if native is None else native
        return await reading.text(self._db, capture, native=shown)

    async def _comparable(self, before: str, after: Capture) -> Capture:
        earlier = await self.get(before)
        if earlier.job != after.job:
            raise ConflictError(
                f"captures {before} and {after.id} are of two jobs: compare captures of one"
            )
        return earlier
