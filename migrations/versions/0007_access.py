"""Browser sessions as rows, tokens for some jobs only, and tokens that enrol nodes."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    ALTER TABLE tokens
        ADD COLUMN jobs text NOT NULL DEFAULT '',
        ADD COLUMN nodes text NOT NULL DEFAULT '',
        ADD COLUMN uses_left integer,
        ADD COLUMN may_replace boolean NOT NULL DEFAULT false,
        ADD COLUMN enrolled_by text REFERENCES tokens (id) ON DELETE SET NULL
    """,
    "CREATE INDEX tokens_of_node ON tokens (node) WHERE revoked_at IS NULL",
    """
    CREATE TABLE sessions (
        id text PRIMARY KEY,
        secret_hash text NOT NULL UNIQUE,
        kind text NOT NULL,
        who text NOT NULL,
        scopes text[] NOT NULL,
        token text REFERENCES tokens (id) ON DELETE CASCADE,
        address text NOT NULL,
        created_at timestamptz NOT NULL,
        last_used_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        ended_at timestamptz
    )
    """,
    "CREATE INDEX sessions_newest ON sessions (created_at DESC, id DESC)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
