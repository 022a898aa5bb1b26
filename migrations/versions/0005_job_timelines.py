"""The line of a job's progress, thinned: it outlives the server's memory and the job."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE job_timelines (
            job text PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
            at timestamptz NOT NULL,
            points jsonb NOT NULL
        )
        """
    )
