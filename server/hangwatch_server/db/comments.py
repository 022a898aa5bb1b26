"""Notes that people leave on incidents, as rows. Used inside the transactions of `incidents`."""

from __future__ import annotations

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_server.db.tables import incident_comments
from hangwatch_server.errors import ConflictError
from hangwatch_server.model import Comment

# A page that nobody can read to its end helps nobody; a script that writes in a loop stops here.
MAX_COMMENTS = 200


async def add(connection: AsyncConnection, incident: str, by: str, text: str) -> None:
    """Raise ConflictError when the incident has all that it takes."""
    own = incident_comments.c.incident == incident
    count = await connection.scalar(select(func.count()).select_from(incident_comments).where(own))
    if (count or 0) >= MAX_COMMENTS:
        raise ConflictError(
            f"incident {incident} has {MAX_COMMENTS} comments, which is all it takes: write to its "
            "people elsewhere"
        )
    await connection.execute(
        insert(incident_comments).values(
            incident=incident, at=func.clock_timestamp(), by=by, text=text
        )
    )


async def of_incident(connection: AsyncConnection, incident: str) -> tuple[Comment, ...]:
    """Oldest first."""
    statement = (
        select(incident_comments)
        .where(incident_comments.c.incident == incident)
        .order_by(incident_comments.c.id)
        .limit(MAX_COMMENTS)
    )
    rows = (await connection.execute(statement)).all()
    return tuple(Comment(at=row.at, by=row.by, text=row.text) for row in rows)
