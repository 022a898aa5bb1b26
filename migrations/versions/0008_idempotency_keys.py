"""Keys under which callers asked for something to be created, with the answer that they got."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE idempotency_keys (
        caller text NOT NULL,
        key text NOT NULL,
        fingerprint text NOT NULL,
        claimed_at timestamptz NOT NULL,
        status integer,
        body bytea,
        location text,
        PRIMARY KEY (caller, key)
    )
    """,
    "CREATE INDEX idempotency_keys_oldest ON idempotency_keys (claimed_at)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
