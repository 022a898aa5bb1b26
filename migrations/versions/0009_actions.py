"""Commands that were run on confirmed hangs: one row for an incident, written before it runs."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0007"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE actions (
        incident text PRIMARY KEY REFERENCES incidents (id) ON DELETE CASCADE,
        job text NOT NULL,
        state text NOT NULL,
        command text[] NOT NULL,
        why text NOT NULL,
        begun_at timestamptz NOT NULL,
        ended_at timestamptz,
        claim text NOT NULL,
        claimed_until timestamptz,
        exit_code integer,
        output text NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX actions_newest ON actions (begun_at DESC)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
