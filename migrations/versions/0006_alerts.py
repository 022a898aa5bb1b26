"""Channels, what was said to them and how it went, silences, and when the monitor was blind."""

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
        target text NOT NULL,
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
        sequence bigint GENERATED ALWAYS AS IDENTITY,
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
        UNIQUE (about, channel, topic, number)
    )
    """,
    "CREATE INDEX deliveries_due ON deliveries (channel, next_at) WHERE state = 'pending'",
    "CREATE INDEX deliveries_in_order ON deliveries (channel, about, sequence)"
    " WHERE state = 'pending'",
    "CREATE INDEX deliveries_newest ON deliveries (created_at DESC, id DESC)",
    "CREATE INDEX deliveries_of_channel ON deliveries (channel, sequence DESC)",
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
    """
    CREATE TABLE blind_spells (
        id text PRIMARY KEY,
        cause text NOT NULL,
        subject text NOT NULL,
        job_name text NOT NULL,
        text text NOT NULL,
        began_at timestamptz NOT NULL,
        ended_at timestamptz,
        told_at timestamptz
    )
    """,
    "CREATE UNIQUE INDEX blind_spells_one_active ON blind_spells (cause, subject)"
    " WHERE ended_at IS NULL",
    "CREATE INDEX blind_spells_to_tell ON blind_spells (began_at) WHERE told_at IS NULL",
    "ALTER TABLE incidents ADD COLUMN told_at timestamptz",
    # Nobody is told now of what ended before there were alerts.
    "UPDATE incidents SET told_at = now() WHERE ended_at IS NOT NULL",
    "CREATE INDEX incidents_to_tell ON incidents (confirmed_at, id)"
    " WHERE confirmed_at IS NOT NULL AND told_at IS NULL",
    "CREATE INDEX jobs_live ON jobs (last_seen) WHERE state NOT IN ('finished', 'failed')",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
