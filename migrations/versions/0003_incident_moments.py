"""What a job looked like when its incident was opened, confirmed or changed."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE incident_moments (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        incident text NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
        at timestamptz NOT NULL,
        moment jsonb NOT NULL
    )
    """,
    "CREATE INDEX incident_moments_of_incident ON incident_moments (incident, id)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
