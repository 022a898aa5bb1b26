"""Two jobs of two teams with an incident and captures each: what one must not see of the other."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tests.support import verdicts as make

from hangwatch_server.db import captures, incidents, jobs, leases
from hangwatch_server.db.engine import Database


@dataclass(frozen=True)
class Team:
    """What a team left behind; `mark` is in the texts of nobody else."""

    name: str
    mark: str
    job: str
    incident: str
    capture: str
    earlier: str

    def path(self, template: str) -> str:
        """A route's path with this team's own ids."""
        return template.format(
            job_id=self.job,
            incident_id=self.incident,
            capture_id=self.capture,
            rank=5,
            gid="aa11bb22cc33",
        )


async def stored_teams(url: str) -> dict[str, Team]:
    db = Database(url)
    await db.open()
    try:
        return {
            "llm": await _stored(db, "llm-7b", "a1" * 6, "secretllm"),
            "vision": await _stored(db, "zebra-vision", "b2" * 6, "secretvision"),
        }
    finally:
        await db.close()


async def _stored(db: Database, name: str, job_id: str, mark: str) -> Team:
    job = dataclasses.replace(make.job(), id=job_id, name=name, nodes=(f"{mark}-node",))
    verdict = dataclasses.replace(
        make.verdict(job_id, node=f"{mark}-node"), name=name, summary=f"{mark} never came"
    )
    await jobs.save(db, dataclasses.replace(job, verdict=verdict), f"run of {name}", {})
    lease = await leases.claim(db, job_id, "server of a test", 60)
    assert lease is not None
    opened = await incidents.open_incident(db, lease, verdict)
    await incidents.confirm(db, lease, opened.id, verdict)
    ids = [f"{job_id[:2]}-{place}" for place in ("one", "two")]
    for capture_id in ids:
        capture = dataclasses.replace(
            make.capture(capture_id, incident=opened.id), job=job_id, requested_by=mark
        )
        await captures.create(db, capture)
        await captures.store_part(db, make.part(capture_id, function=f"{mark}_step"), "node-b")
    return Team(name, mark, job_id, opened.id, ids[1], ids[0])
