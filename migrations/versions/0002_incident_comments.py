"""Comments on incidents, and a snooze that lasts until the job ends."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE incident_comments (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        incident text NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
        at timestamptz NOT NULL,
        by text NOT NULL,
        text text NOT NULL
    )
    """,
    "CREATE INDEX incident_comments_of_incident ON incident_comments (incident, id)",
    "ALTER TABLE incidents ADD COLUMN is_snoozed_to_end boolean NOT NULL DEFAULT false",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
