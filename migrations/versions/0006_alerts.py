"""Channels, what was said to them and how it went, and silences."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE channels (
        id text PRIMARY KEY,
        name text NOT NULL UNIQUE,
        kind text NOT NULL,
        options jsonb NOT NULL,
        secrets jsonb NOT NULL,
        topics text[] NOT NULL,
        matchers jsonb NOT NULL,
        after_s double precision NOT NULL,
        remind_s double precision NOT NULL,
        is_enabled boolean NOT NULL,
        disabled_reason text NOT NULL,
        created_at timestamptz NOT NULL,
        created_by text NOT NULL
    )
    """,
    """
    CREATE TABLE deliveries (
        id text PRIMARY KEY,
        channel text NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
        incident text REFERENCES incidents (id) ON DELETE CASCADE,
        about text NOT NULL,
        topic text NOT NULL,
        number integer NOT NULL,
        state text NOT NULL,
        reason text NOT NULL DEFAULT '',
        message jsonb NOT NULL,
        created_at timestamptz NOT NULL,
        next_at timestamptz,
        sent_at timestamptz,
        tries integer NOT NULL DEFAULT 0,
        claimed_until timestamptz,
        claim text NOT NULL DEFAULT '',
        thread text NOT NULL DEFAULT '',
        UNIQUE (channel, about, topic, number)
    )
    """,
    "CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending'",
    "CREATE INDEX deliveries_newest ON deliveries (created_at DESC, id DESC)",
    "CREATE INDEX deliveries_of_incident ON deliveries (incident, created_at)",
    """
    CREATE TABLE delivery_attempts (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        delivery text NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
        at timestamptz NOT NULL,
        status integer,
        error text NOT NULL,
        took_s double precision NOT NULL
    )
    """,
    "CREATE INDEX delivery_attempts_of_delivery ON delivery_attempts (delivery, id)",
    """
    CREATE TABLE silences (
        id text PRIMARY KEY,
        matchers jsonb NOT NULL,
        starts_at timestamptz NOT NULL,
        ends_at timestamptz NOT NULL,
        repeat text NOT NULL,
        created_at timestamptz NOT NULL,
        created_by text NOT NULL,
        comment text NOT NULL,
        cancelled_at timestamptz
    )
    """,
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
